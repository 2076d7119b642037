//! Routing rules: which instance may send which messages to which.

use polyclaw_domain::audit::AuditEntry;
use polyclaw_domain::envelope::{DEFAULT_MAX_RETRIES, DEFAULT_TTL_SECS, EnvelopeKindPattern};
use polyclaw_domain::redact::quote_safely;
use polyclaw_store::Tx;
use polyclaw_store::registry::rules::{self, RoutingRule};

use crate::access::ControlCaller;
use crate::audit;
use crate::control::Control;
use crate::error::{Error, Result};

const MAX_RETRIES: u32 = 100;
const MAX_TTL_SECS: u32 = 30 * 24 * 3_600;

/// The requested properties of a rule.
#[derive(Clone, Debug, Default)]
pub struct NewRoutingRule {
    /// The id or name of the sender.
    pub from: String,
    pub to: String,
    pub kind: String,
    pub max_retries: Option<u32>,
    pub ttl_secs: Option<u32>,
    pub auto_start: bool,
}

/// Changes of a rule. Omitted values stay as they are.
#[derive(Clone, Debug, Default)]
pub struct RoutingRuleChange {
    pub kind: Option<String>,
    pub max_retries: Option<u32>,
    pub ttl_secs: Option<u32>,
    pub auto_start: Option<bool>,
}

impl Control {
    pub async fn get_rule(&self, id: &str) -> Result<RoutingRule> {
        let wanted = id.to_owned();
        let found = self.db.read(move |tx: &mut Tx<'_>| rules::get(tx, &wanted)).await?;
        found.ok_or_else(|| Error::UnknownRule(quote_safely(id)))
    }

    /// Updates a rule. Messages accepted before keep their terms.
    pub async fn update_rule(
        &self,
        by: &ControlCaller,
        id: &str,
        change: RoutingRuleChange,
    ) -> Result<RoutingRule> {
        let old = self.get_rule(id).await?;
        let rule = RoutingRule {
            pattern: change.kind.as_deref().map_or(Ok(old.pattern.clone()), parse_pattern)?,
            max_retries: parse_bounded("max_retries", change.max_retries, old.max_retries, MAX_RETRIES)?,
            ttl_secs: parse_bounded("ttl_secs", change.ttl_secs, old.ttl_secs, MAX_TTL_SECS)?,
            auto_start: change.auto_start.unwrap_or(old.auto_start),
            ..old
        };
        let detail = format!("{} → {}: {}", rule.from, rule.to, rule.pattern.as_str());
        let entry = AuditEntry { detail, ..self.audit_entry(by, "rule.update", &rule.id) };
        let stored = rule.clone();
        let updated = self.db.write(move |tx| {
            let updated = rules::update(tx, &stored)?;
            audit::append_optional(tx, Some(&entry).filter(|_| updated))?;
            Ok(updated)
        });
        if updated.await? { Ok(rule) } else { Err(Error::RuleExists) }
    }

    pub async fn list_rules(&self, after: i64, limit: usize) -> Result<Vec<RoutingRule>> {
        Ok(self.db.read(move |tx: &mut Tx<'_>| rules::list(tx, after, limit)).await?)
    }

    pub async fn create_rule(&self, by: &ControlCaller, new: NewRoutingRule) -> Result<RoutingRule> {
        if [&new.from, &new.to].iter().any(|name| name.contains('*')) {
            return Err(Error::BadRule(
                "from and to must each name one instance; wildcards are not allowed".to_owned(),
            ));
        }
        let (from, to) = (self.find_active(&new.from).await?, self.find_active(&new.to).await?);
        if from.id == to.id {
            return Err(Error::BadRule("an instance cannot send messages to itself".to_owned()));
        }
        let rule = RoutingRule {
            seq: 0,
            id: self.ids.next_id(),
            from: from.id,
            to: to.id,
            from_name: Some(from.name.to_string()),
            to_name: Some(to.name.to_string()),
            pattern: parse_pattern(&new.kind)?,
            max_retries: parse_bounded("max_retries", new.max_retries, DEFAULT_MAX_RETRIES, MAX_RETRIES)?,
            ttl_secs: parse_bounded("ttl_secs", new.ttl_secs, DEFAULT_TTL_SECS, MAX_TTL_SECS)?,
            auto_start: new.auto_start,
            created_at: self.now(),
        };
        let detail = format!("{} → {}: {}", from.name, to.name, rule.pattern.as_str());
        let entry = AuditEntry { detail, ..self.audit_entry(by, "rule.create", &rule.id) };
        let stored = rule.clone();
        let added = self.db.write(move |tx| {
            let added = rules::insert(tx, &stored)?;
            audit::append_optional(tx, Some(&entry).filter(|_| added))?;
            Ok(added)
        });
        if added.await? { Ok(rule) } else { Err(Error::RuleExists) }
    }

    /// Removes a rule. Messages accepted under it are still delivered.
    pub async fn remove_rule(&self, by: &ControlCaller, id: &str) -> Result<()> {
        let (wanted, entry) = (id.to_owned(), self.audit_entry(by, "rule.delete", id));
        let removed = self.db.write(move |tx| {
            let removed = rules::remove(tx, &wanted)?;
            let notice = removed.as_ref().map(|rule| {
                let detail = format!("{} → {}: {}", rule.from, rule.to, rule.pattern.as_str());
                AuditEntry { detail, ..entry.clone() }
            });
            audit::append_optional(tx, notice.as_ref())?;
            Ok(removed.is_some())
        });
        if removed.await? { Ok(()) } else { Err(Error::UnknownRule(quote_safely(id))) }
    }
}

fn parse_pattern(kind: &str) -> Result<EnvelopeKindPattern> {
    EnvelopeKindPattern::parse(kind).ok_or_else(|| {
        Error::BadRule(
            "type: must be a type such as task.handoff, or all below one, such as task.*".to_owned(),
        )
    })
}

fn parse_bounded(name: &str, requested: Option<u32>, usual: u32, most: u32) -> Result<u32> {
    match requested.unwrap_or(usual) {
        fits if (1..=most).contains(&fits) => Ok(fits),
        _ => Err(Error::BadRule(format!("{name}: must be from 1 to {most}"))),
    }
}
