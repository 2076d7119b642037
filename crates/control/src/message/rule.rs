//! Who may write what to whom.

use polyclaw_domain::audit::Entry;
use polyclaw_domain::envelope::{Pattern, RETRIES, TTL_SECS};
use polyclaw_domain::redact::quoted;
use polyclaw_store::Tx;
use polyclaw_store::registry::rules::{self, Rule};

use crate::access::Caller;
use crate::audit;
use crate::control::Control;
use crate::error::{Error, Result};

const MOST_RETRIES: u32 = 100;
const LONGEST_TTL_SECS: u32 = 30 * 24 * 3_600;

/// A rule as somebody asks for it.
#[derive(Clone, Debug, Default)]
pub struct NewRule {
    /// By id or name.
    pub from: String,
    pub to: String,
    pub kind: String,
    pub max_retries: Option<u32>,
    pub ttl_secs: Option<u32>,
    pub auto_start: bool,
}

impl Control {
    pub async fn rules(&self, after: i64, limit: usize) -> Result<Vec<Rule>> {
        Ok(self.db.read(move |tx: &mut Tx<'_>| rules::list(tx, after, limit)).await?)
    }

    pub async fn make_rule(&self, by: &Caller, new: NewRule) -> Result<Rule> {
        let (from, to) = (self.active(&new.from).await?, self.active(&new.to).await?);
        if from.id == to.id {
            return Err(Error::BadRule("an instance does not write to itself".to_owned()));
        }
        let pattern = Pattern::parse(&new.kind).ok_or_else(|| {
            Error::BadRule("type: one such as task.handoff, or all below one, such as task.*".to_owned())
        })?;
        let bounded = |name: &str, wish: Option<u32>, usual: u32, most: u32| match wish.unwrap_or(usual) {
            fits if (1..=most).contains(&fits) => Ok(fits),
            _ => Err(Error::BadRule(format!("{name}: 1 to {most}"))),
        };
        let rule = Rule {
            seq: 0,
            id: self.ids.next(),
            from: from.id,
            to: to.id,
            from_name: Some(from.name.to_string()),
            to_name: Some(to.name.to_string()),
            pattern,
            max_retries: bounded("max_retries", new.max_retries, RETRIES, MOST_RETRIES)?,
            ttl_secs: bounded("ttl_secs", new.ttl_secs, TTL_SECS, LONGEST_TTL_SECS)?,
            auto_start: new.auto_start,
            created_at: self.now(),
        };
        let detail = format!("{} → {}: {}", from.name, to.name, rule.pattern.as_str());
        let entry = Entry { detail, ..self.entry(by, "rule.create", &rule.id) };
        let stored = rule.clone();
        let added = self.db.write(move |tx| {
            let added = rules::add(tx, &stored)?;
            audit::note(tx, Some(&entry).filter(|_| added))?;
            Ok(added)
        });
        if added.await? { Ok(rule) } else { Err(Error::RuleExists) }
    }

    /// What was taken in under it is delivered all the same.
    pub async fn remove_rule(&self, by: &Caller, id: &str) -> Result<()> {
        let (wanted, entry) = (id.to_owned(), self.entry(by, "rule.delete", id));
        let removed = self.db.write(move |tx| {
            let removed = rules::remove(tx, &wanted)?;
            let told = removed.as_ref().map(|rule| {
                let detail = format!("{} → {}: {}", rule.from, rule.to, rule.pattern.as_str());
                Entry { detail, ..entry.clone() }
            });
            audit::note(tx, told.as_ref())?;
            Ok(removed.is_some())
        });
        if removed.await? { Ok(()) } else { Err(Error::UnknownRule(quoted(id))) }
    }
}
