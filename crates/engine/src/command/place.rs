//! Where a conversation goes on, and for how long: `/focus`, `/unfocus` and `/session ttl`.

use polyclaw_domain::key::SessionKey;
use polyclaw_domain::schedule;
use polyclaw_store::sessions;

use crate::core::Engine;
use crate::error::{Error, Result};

impl Engine {
    /// What is written here goes to another session from now on, until somebody says otherwise.
    pub(super) async fn focus_command(&self, session: &SessionKey, rest: &str) -> Result<String> {
        if rest.is_empty() {
            return Ok("Say which session: /focus <session key>, or a sub-agent by number, label or run id."
                .to_owned());
        }
        self.session(session).await?;
        let target = match SessionKey::parse(rest) {
            Ok(target) => target,
            Err(_) => self.find_child(session, rest.trim_matches('"')).await?.run.child,
        };
        let there = self.session(&target).await.map_err(|error| match error {
            Error::UnknownSession(key) => Error::NotNow(format!("there is no session {key}")),
            error => error,
        })?;
        if target == *session || there.focus.is_some() {
            return Err(Error::NotNow(format!("{target} is no place to go on")));
        }
        let (from, to, now) = (session.clone(), target.clone(), self.now());
        self.db().write(move |tx| sessions::set_focus(tx, &from, Some(&to), now)).await?;
        Ok(format!("What you write here goes to {target} now. /unfocus brings you back."))
    }

    pub(super) async fn unfocus_command(&self, session: &SessionKey) -> Result<String> {
        let is_away = self.session(session).await?.focus.is_some();
        let (wanted, now) = (session.clone(), self.now());
        self.db().write(move |tx| sessions::set_focus(tx, &wanted, None, now)).await?;
        Ok(if is_away { "Back in this conversation.".to_owned() } else { "You are not away.".to_owned() })
    }

    pub(super) async fn session_command(&self, session: &SessionKey, rest: &str) -> Result<String> {
        const USAGE: &str = "Say how long: /session ttl 12h, or /session ttl off.";
        let Some(length) = rest.strip_prefix("ttl").map(str::trim).filter(|length| !length.is_empty()) else {
            return Ok(USAGE.to_owned());
        };
        let ttl_ms = match length {
            "off" => None,
            _ => match schedule::interval(length) {
                Ok(millis) => Some(millis),
                Err(why) => return Ok(format!("{length:?} is no length of time: {why}. {USAGE}")),
            },
        };
        self.session(session).await?;
        let (wanted, now) = (session.clone(), self.now());
        self.db().write(move |tx| sessions::set_ttl(tx, &wanted, ttl_ms, now)).await?;
        Ok(match ttl_ms {
            Some(_) => format!("After {length} of silence a new conversation begins."),
            None => "This conversation goes on until you say /new.".to_owned(),
        })
    }
}
