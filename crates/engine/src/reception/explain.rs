//! `route explain`: who would answer a letter and why, by the code that decides. Nothing is changed and no model asked.

use polyclaw_domain::admission::Admission;
use polyclaw_domain::channel::Letter;
use polyclaw_domain::command::parse;
use polyclaw_domain::id::AgentId;
use polyclaw_domain::key::SessionKey;
use polyclaw_domain::provider::ModelRef;
use polyclaw_domain::route;

use super::route::{Layer, Routed, Target};
use crate::agent::Explained;
use crate::core::Engine;
use crate::error::Result;

/// What would become of a letter.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// `admitted`, `pair`, or why it is ignored.
    pub admission: &'static str,
    /// What decided; `None` where nobody is asked: a command, or an agent's name alone.
    pub layer: Option<Layer>,
    /// It is this command.
    pub command: Option<&'static str>,
    /// What bindings say, whoever answers in the end.
    pub bindings: route::Explanation,
    /// A model would be asked whether another agent fits better.
    pub asks_classifier: bool,
    pub answers: Vec<Answerer>,
}

/// One agent that would answer, with what it would have.
#[derive(Clone, Debug)]
pub struct Answerer {
    pub agent: AgentId,
    pub session: SessionKey,
    pub model: Option<ModelRef>,
    pub tools: Vec<Explained>,
}

impl Engine {
    pub async fn explain_route(&self, letter: &Letter) -> Result<Explanation> {
        let (arrival, settings) = (&letter.arrival, self.settings());
        let command = parse(&letter.text).map(|(command, _)| command.name);
        let place = self.place(arrival).await?;
        let routed = match command {
            Some(_) => None,
            None => Some(self.without_classifier(arrival, &letter.text, place).await?),
        };
        let (layer, targets) = match routed {
            Some(Routed::Several(targets)) => (Some(Layer::Broadcast), targets),
            Some(Routed::One { target, layer, .. }) => (Some(layer), vec![target]),
            Some(Routed::Usage(_)) | None => (None, Vec::new()),
        };
        let mut answers = Vec::new();
        for target in targets {
            answers.push(self.answerer(target).await?);
        }
        Ok(Explanation {
            admission: self.admission(letter).await?,
            command,
            layer,
            bindings: settings.reception.router.explain(arrival),
            asks_classifier: layer == Some(Layer::Default) && settings.reception.classifier.model.is_some(),
            answers,
        })
    }

    async fn admission(&self, letter: &Letter) -> Result<&'static str> {
        Ok(match self.admit(letter).await? {
            Admission::Admitted => "admitted",
            Admission::Pair => "pair",
            Admission::Ignored(reason) => reason.as_str(),
        })
    }

    async fn answerer(&self, target: Target) -> Result<Answerer> {
        let wanted = target.session.clone();
        let stored = self.db().read(move |tx| polyclaw_store::sessions::get(tx, &wanted)).await?;
        let active = stored.as_ref().map_or(&target.agent, |session| &session.active_agent);
        let agent = target.by.as_ref().unwrap_or(active).clone();
        let picked = stored.as_ref().and_then(|session| session.model_override.clone());
        let spec = self.agent(&agent).await?.spec;
        let model = picked.or(spec.defaults.model).or_else(|| self.settings().default_model.clone());
        let session = stored.as_ref().map(|session| &session.key);
        let tools = self.tools_of(Some(&agent), session).await?;
        Ok(Answerer { agent, session: target.session, model, tools })
    }
}
