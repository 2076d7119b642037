//! The language of replies to inbound messages that start no turn.

use polyclaw_domain::channel::InboundMessage;
use polyclaw_domain::locale::{ConversationLanguage, Locale};
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::sessions;

use super::route::{BindingRoute, broadcast_targets};
use crate::core::Engine;
use crate::error::Result;

impl Engine {
    /// The language of the conversation. If its own session decides none, that of the session it is focused on or of the
    /// first agent of its broadcast, else that of the message.
    pub(super) async fn reply_locale(
        &self,
        message: &InboundMessage,
        place: &BindingRoute,
    ) -> Result<Locale> {
        let settings = self.settings();
        let own = place.session.as_ref().map(|session| session.language).unwrap_or_default();
        if let Some(locale) = own.chosen.unwrap_or(settings.language).locale().or(own.detected) {
            return Ok(locale);
        }
        let other = match &place.session {
            Some(session) => session.focus.clone(),
            None => broadcast_targets(&settings.inbound, &message.context)
                .and_then(|targets| targets.into_iter().next())
                .map(|target| target.session),
        };
        let other = match other {
            Some(key) => self.stored_language(&key).await?,
            None => ConversationLanguage::default(),
        };
        let language = ConversationLanguage { chosen: own.chosen.or(other.chosen), ..other };
        Ok(settings.locale_for_text(language, &message.text))
    }

    /// The language of a session. A session that does not exist has none.
    pub(super) async fn stored_language(&self, key: &SessionKey) -> Result<ConversationLanguage> {
        let key = key.clone();
        let session = self.db().read(move |tx| sessions::get(tx, &key)).await?;
        Ok(session.map(|session| session.language).unwrap_or_default())
    }
}
