//! `models_list` and `session_set_model`.

use polyclaw_domain::provider::{ModelInfo, ModelRef, ModelStatus};
use polyclaw_domain::tool::ToolScope;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ToolCallResult, ToolRefusal};
use crate::core::Engine;

/// Maximum number of lines shown to the model. A provider may have hundreds of models.
const MAX_SHOWN_MODELS: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelsListArguments {
    /// List only this provider's models.
    provider: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionSetModelArguments {
    /// provider/model from models_list, or "default".
    model_ref: String,
}

pub(super) async fn list(
    engine: &Engine,
    ModelsListArguments { provider }: ModelsListArguments,
) -> ToolCallResult {
    let models = engine.provider().list_models().await;
    let wanted = |info: &&ModelInfo| provider.as_ref().is_none_or(|name| info.model.provider == *name);
    let lines: Vec<String> = models.iter().filter(wanted).map(model_line).collect();
    Ok(match (lines.len(), provider) {
        (0, Some(provider)) => format!("The provider '{provider}' lists no models."),
        (0, None) => "No models are known.".to_owned(),
        (count, _) if count > MAX_SHOWN_MODELS => {
            format!("{}\n+ ({} more)", lines[..MAX_SHOWN_MODELS].join("\n"), count - MAX_SHOWN_MODELS)
        }
        _ => lines.join("\n"),
    })
}

fn model_line(info: &ModelInfo) -> String {
    let state = match info.status {
        ModelStatus::Ready => "",
        ModelStatus::Cooling => " (cooling down after an error)",
        ModelStatus::Unreachable => " (unreachable)",
        ModelStatus::Damaged => " (model file is corrupt)",
    };
    format!("{}{state}", info.model)
}

/// Sets the session's model. Models cost the owner's money, so calls in turns of others are approved by an owner first.
pub(super) async fn set_model(
    engine: &Engine,
    scope: &ToolScope,
    SessionSetModelArguments { model_ref }: SessionSetModelArguments,
) -> ToolCallResult {
    if model_ref == "default" {
        engine.set_session_model(&scope.session, None).await?;
        return Ok("The agent's default model answers from the next turn on.".to_owned());
    }
    let model = ModelRef::parse(&model_ref).map_err(|error| ToolRefusal(error.to_string()))?;
    engine.set_session_model(&scope.session, Some(model.clone())).await?;
    Ok(format!("{model} answers from the next turn on."))
}
