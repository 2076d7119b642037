//! `/usage`: the token usage of a session, as far as it is known.

use polyclaw_domain::budget;
use polyclaw_domain::session_key::SessionKey;
use polyclaw_store::usage::{self, GroupedUsage};

use crate::core::Engine;
use crate::error::Result;

impl Engine {
    pub(super) async fn usage_command(&self, session: &SessionKey) -> Result<String> {
        let wanted = session.clone();
        let total = self.db().read(move |tx| usage::sum_by_session(tx, &wanted)).await?;
        Ok(total.map_or_else(|| "Nothing was used here yet.".to_owned(), |total| usage_reply(&total)))
    }
}

/// Reports unknown usage as unknown instead of guessing.
fn usage_reply(total: &GroupedUsage) -> String {
    let known = |tokens: Option<i64>| tokens.map_or("unknown".to_owned(), |tokens| tokens.to_string());
    let (input, output) = (known(total.input_tokens), known(total.output_tokens));
    let mut text = format!("{} model call(s), {input} tokens in, {output} out", total.calls);
    if let Some(cost) = total.cost_nanos {
        text += &format!(", ${:.4}", budget::nanos_to_usd(cost));
    }
    for (count, what) in [(total.unknown_calls, "usage"), (total.unpriced_calls, "cost")] {
        if count > 0 {
            text += &format!("; the {what} of {count} is not known");
        }
    }
    text
}
