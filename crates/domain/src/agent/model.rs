//! Spellings of an agent's model: `"provider/model"`, or a table with related settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ModelSettings;
use crate::provider::{ModelRef, ReasoningEffort};

/// A model, optionally with a temperature and fallbacks.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelChoice {
    pub model: ModelRef,
    pub temperature: Option<f64>,
    pub fallbacks: Option<Vec<ModelRef>>,
}

impl From<ModelRef> for ModelChoice {
    fn from(model: ModelRef) -> Self {
        Self { model, temperature: None, fallbacks: None }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ModelChoiceInput {
    Text(String),
    Table(ModelChoiceTable),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelChoiceTable {
    /// `provider/model`, instead of `provider` and `model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    primary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fallbacks: Option<Vec<ModelRef>>,
}

impl<'de> Deserialize<'de> for ModelChoice {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let shape =
            "a model must be \"provider/model\", {provider, model, temperature?, fallbacks?} or {primary, …}";
        match ModelChoiceInput::deserialize(deserializer).map_err(|_| D::Error::custom(shape))? {
            ModelChoiceInput::Text(text) => ModelRef::parse(&text).map(Self::from).map_err(D::Error::custom),
            ModelChoiceInput::Table(ModelChoiceTable {
                primary,
                provider,
                model,
                temperature,
                fallbacks,
            }) => {
                let named = match (primary, provider, model) {
                    (Some(primary), None, None) => primary,
                    (None, Some(provider), Some(model)) => format!("{provider}/{model}"),
                    _ => return Err(D::Error::custom(shape)),
                };
                let model = ModelRef::parse(&named).map_err(D::Error::custom)?;
                Ok(Self { model, temperature, fallbacks })
            }
        }
    }
}

/// Serialises to the shortest form.
impl Serialize for ModelChoice {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { model, temperature, fallbacks } = self.clone();
        if temperature.is_none() && fallbacks.is_none() {
            return model.serialize(serializer);
        }
        let ModelRef { provider, model } = model;
        let (provider, model) = (Some(provider), Some(model));
        ModelChoiceTable { primary: None, provider, model, temperature, fallbacks }.serialize(serializer)
    }
}

impl JsonSchema for ModelChoice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ModelChoice".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let model = generator.subschema_for::<ModelRef>();
        schemars::json_schema!({
            "description": "provider/model, or a table with provider, model and optional settings",
            "type": ["string", "object"],
            "pattern": "^[^/]+/.+$",
            "properties": {
                "primary": { "type": "string", "description": "provider/model, instead of provider and model." },
                "provider": { "type": "string", "description": "Name of a provider." },
                "model": { "type": "string", "description": "Name of the model at the provider." },
                "temperature": {
                    "type": "number",
                    "minimum": 0.0,
                    "maximum": 2.0,
                    "description": "Sampling temperature, from 0 (deterministic) to 2.",
                },
                "fallbacks": {
                    "type": "array",
                    "items": model,
                    "description": "Models to try, in this order, if the model fails.",
                },
            },
            "additionalProperties": false,
        })
    }
}

/// Merges a setting of the model's table with the one next to it. Conflicting values are an error.
pub fn merge_setting<T: PartialEq>(
    what: &str,
    inside: Option<T>,
    other: Option<T>,
) -> Result<Option<T>, String> {
    match (inside, other) {
        (Some(inside), Some(other)) if inside != other => {
            Err(format!("{what} is given twice: in the model's table and next to it"))
        }
        (inside, other) => Ok(inside.or(other)),
    }
}

/// [`ModelSettings`] as it may be written in a file or request.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModelSettingsInput {
    /// `provider/model`, or `{provider, model, temperature?, fallbacks?}`. If omitted, the instance's default model.
    model: Option<ModelChoice>,
    /// Models to try in order if the model fails.
    fallbacks: Option<Vec<ModelRef>>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    /// How much the model reasons: `low`, `medium` or `high`. If omitted, the provider's default applies.
    reasoning_effort: Option<ReasoningEffort>,
    system_prompt: Option<String>,
}

impl TryFrom<ModelSettingsInput> for ModelSettings {
    type Error = String;

    fn try_from(written: ModelSettingsInput) -> Result<Self, String> {
        let ModelSettingsInput { model, fallbacks, temperature, max_tokens, reasoning_effort, system_prompt } =
            written;
        let inside = model.clone();
        let (warmth, others) = inside.map_or((None, None), |choice| (choice.temperature, choice.fallbacks));
        // A stored agent always has `fallbacks`, even if the list is empty.
        let fallbacks = fallbacks.filter(|list| others.is_none() || !list.is_empty());
        Ok(Self {
            model: model.map(|choice| choice.model),
            fallbacks: merge_setting("fallbacks", others, fallbacks)?.unwrap_or_default(),
            temperature: merge_setting("temperature", warmth, temperature)?,
            max_tokens,
            reasoning_effort,
            system_prompt,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Result<ModelSettings, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn model_as_text_and_as_table_are_equal() {
        let plain = read(json!({ "model": "p/m", "temperature": 0.5, "fallbacks": ["p/n"] })).unwrap();
        let table = json!({ "provider": "p", "model": "m", "temperature": 0.5, "fallbacks": ["p/n"] });
        assert_eq!(plain, read(json!({ "model": table })).unwrap());
        let primary = json!({ "primary": "p/m", "temperature": 0.5, "fallbacks": ["p/n"] });
        assert_eq!(plain, read(json!({ "model": primary })).unwrap());
        assert!(read(json!({ "model": { "primary": "p/m", "model": "n" } })).is_err());
        assert_eq!(plain, read(serde_json::to_value(&plain).unwrap()).unwrap());
    }

    #[test]
    fn conflicting_model_settings_are_refused() {
        let table = |inside: f64, other: f64| {
            read(
                json!({ "model": { "provider": "p", "model": "m", "temperature": inside }, "temperature": other }),
            )
        };
        assert!(table(0.5, 0.5).is_ok());
        assert!(table(0.5, 0.6).unwrap_err().contains("given twice"));
        for bad in [json!("m"), json!({ "provider": "p" }), json!(1), json!({ "provider": "", "model": "m" })]
        {
            assert!(read(json!({ "model": bad })).is_err(), "{bad}");
        }
    }
}
