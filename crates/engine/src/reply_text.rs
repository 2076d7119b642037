//! The sentences that the engine writes to people, in all languages. Each function is one sentence or one reply, with
//! named arguments and its translations side by side. Texts of types in `domain` are next to these types.
//!
//! Command names, ids, codes and settings are not translated. Texts for models and API errors are English.

pub(crate) mod approval;
pub(crate) mod command;
pub(crate) mod error;
pub(crate) mod inbound;
pub(crate) mod notice;
pub(crate) mod status;
pub(crate) mod subagent;
pub(crate) mod team;
pub(crate) mod turn;

use polyclaw_domain::locale::Locale;

/// Joins the items of a list in a sentence.
pub(crate) fn join_list(locale: Locale, items: &[String]) -> String {
    match locale {
        Locale::English => items.join(", "),
        Locale::Chinese => items.join("、"),
    }
}

/// Returns an English count with its noun.
fn count_noun(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
