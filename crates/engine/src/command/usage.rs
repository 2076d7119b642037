//! `/usage`: the token usage of a session, as far as it is known.

use polyclaw_domain::locale::Locale;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::usage;

use crate::core::Engine;
use crate::error::Result;
use crate::reply_text::status;

impl Engine {
    pub(super) async fn usage_command(&self, session: &SessionKey, locale: Locale) -> Result<String> {
        let wanted = session.clone();
        let total = self.db().read(move |tx| usage::sum_by_session(tx, &wanted)).await?;
        Ok(total.map_or_else(|| status::no_usage(locale), |total| status::session_usage(locale, &total)))
    }
}
