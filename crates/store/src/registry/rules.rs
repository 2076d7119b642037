//! Routing rules: which instance may send which types to which. Without a matching rule a message is rejected.

use polyclaw_domain::envelope::EnvelopeKindPattern;
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::time::Millis;

use crate::error::Result;
use crate::params;
use crate::tx::{Row, Tx};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingRule {
    /// Position in the list; assigned on insert.
    pub seq: i64,
    pub id: String,
    pub from: InstanceId,
    pub to: InstanceId,
    /// Current names. Rules are deleted with their instances.
    pub from_name: Option<String>,
    pub to_name: Option<String>,
    pub pattern: EnvelopeKindPattern,
    pub max_retries: u32,
    pub ttl_secs: u32,
    pub auto_start: bool,
    pub created_at: Millis,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT seq, id, sender, recipient, type, max_retries, ttl_secs, auto_start, created_at,
             (SELECT name FROM instances WHERE instances.id = sender),
             (SELECT name FROM instances WHERE instances.id = recipient)
             FROM routing_rules ",
            $rest
        )
    };
}

fn routing_rule_from_row(row: &Row<'_>) -> Result<RoutingRule> {
    Ok(RoutingRule {
        seq: row.int(0)?,
        id: row.text(1)?,
        from: InstanceId::new(row.text(2)?),
        to: InstanceId::new(row.text(3)?),
        from_name: row.opt_text(9)?,
        to_name: row.opt_text(10)?,
        pattern: row.parse_column(4, EnvelopeKindPattern::parse)?,
        max_retries: row.as_u32(5)?,
        ttl_secs: row.as_u32(6)?,
        auto_start: row.flag(7)?,
        created_at: row.time(8)?,
    })
}

/// Adds a rule. Returns false if there is one for the same instances and types.
pub fn insert(tx: &mut Tx<'_>, rule: &RoutingRule) -> Result<bool> {
    const SQL: &str =
        "INSERT INTO routing_rules (id, sender, recipient, type, max_retries, ttl_secs, auto_start, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (sender, recipient, type) DO NOTHING";
    let params = params![
        &rule.id,
        &rule.from,
        &rule.to,
        rule.pattern.as_str(),
        rule.max_retries,
        rule.ttl_secs,
        rule.auto_start,
        rule.created_at
    ];
    Ok(tx.execute(SQL, params)? == 1)
}

/// Lists rules in the order of creation, after a position.
pub fn list(tx: &mut Tx<'_>, after: i64, limit: usize) -> Result<Vec<RoutingRule>> {
    tx.query(select!("WHERE seq > $1 ORDER BY seq LIMIT $2"), params![after, limit], routing_rule_from_row)
}

pub fn get(tx: &mut Tx<'_>, id: &str) -> Result<Option<RoutingRule>> {
    tx.query_one(select!("WHERE id = $1"), params![id], routing_rule_from_row)
}

/// Replaces a rule between the same instances. Returns false if there is another one for the same types.
pub fn update(tx: &mut Tx<'_>, rule: &RoutingRule) -> Result<bool> {
    const FIND_SAME: &str =
        "SELECT 1 FROM routing_rules WHERE sender = $1 AND recipient = $2 AND type = $3 AND id <> $4";
    const SQL: &str = "UPDATE routing_rules SET type = $2, max_retries = $3, ttl_secs = $4, auto_start = $5
        WHERE id = $1";
    let same = params![&rule.from, &rule.to, rule.pattern.as_str(), &rule.id];
    if tx.query_one(FIND_SAME, same, |row| row.int(0))?.is_some() {
        return Ok(false);
    }
    let params = params![&rule.id, rule.pattern.as_str(), rule.max_retries, rule.ttl_secs, rule.auto_start];
    Ok(tx.execute(SQL, params)? == 1)
}

/// Removes a rule and returns it.
pub fn remove(tx: &mut Tx<'_>, id: &str) -> Result<Option<RoutingRule>> {
    const SQL: &str = "DELETE FROM routing_rules WHERE id = $1";
    let found = tx.query_one(select!("WHERE id = $1"), params![id], routing_rule_from_row)?;
    if found.is_some() {
        tx.execute(SQL, params![id])?;
    }
    Ok(found)
}

/// Returns the rule that matches a type most specifically.
pub fn find_best_match(
    tx: &mut Tx<'_>,
    from: &InstanceId,
    to: &InstanceId,
    kind: &str,
) -> Result<Option<RoutingRule>> {
    let rules =
        tx.query(select!("WHERE sender = $1 AND recipient = $2"), params![from, to], routing_rule_from_row)?;
    let fits = rules.into_iter().filter_map(|rule| Some((rule.pattern.match_specificity(kind)?, rule)));
    Ok(fits.max_by_key(|(fit, _)| *fit).map(|(_, rule)| rule))
}
