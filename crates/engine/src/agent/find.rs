//! Finds an agent by what a person or a model calls it.

use polyclaw_store::agents::StoredAgent;

use crate::error::{Error, Result};

/// Finds an agent by exact id, name or displayed name. Displayed names may be ambiguous.
pub(crate) fn find_agent_exact<'a>(agents: &'a [StoredAgent], wanted: &str) -> Result<&'a StoredAgent> {
    // Ids come first, so that no other agent's name can shadow one.
    let by_id = agents.iter().find(|stored| stored.spec.agent_id.as_str() == wanted);
    if let Some(found) = by_id.or_else(|| agents.iter().find(|stored| stored.spec.name == wanted)) {
        return Ok(found);
    }
    let shows = |stored: &&StoredAgent| stored.spec.identity.name.as_deref() == Some(wanted);
    match agents.iter().filter(shows).collect::<Vec<_>>().as_slice() {
        [] => Err(Error::UnknownAgent(wanted.to_owned())),
        [only] => Ok(only),
        several => {
            let ids: Vec<&str> = several.iter().map(|stored| stored.spec.agent_id.as_str()).collect();
            Err(Error::AmbiguousAgent(wanted.to_owned(), ids.join(", ")))
        }
    }
}

/// Finds an agent by exact name, else ignoring case, else by prefix, else by substring. The first kind of match must be
/// unique.
pub(crate) fn find_agent_fuzzy<'a>(agents: &'a [StoredAgent], wanted: &str) -> Result<&'a StoredAgent> {
    if let Ok(found) = find_agent_exact(agents, wanted.trim()) {
        return Ok(found);
    }
    let wanted_low = wanted.trim().to_lowercase();
    if wanted_low.is_empty() {
        return Err(Error::UnknownAgent(wanted.to_owned()));
    }
    let ways: [fn(&str, &str) -> bool; 3] = [
        |name, wanted| name == wanted,
        |name, wanted| name.starts_with(wanted),
        |name, wanted| name.contains(wanted),
    ];
    for fits in ways {
        let is_meant = |stored: &&StoredAgent| {
            fits(stored.spec.agent_id.as_str(), &wanted_low)
                || fits(&stored.spec.name.to_lowercase(), &wanted_low)
        };
        match agents.iter().filter(is_meant).collect::<Vec<_>>().as_slice() {
            [] => {}
            [only] => return Ok(only),
            several => {
                let ids: Vec<&str> = several.iter().map(|stored| stored.spec.agent_id.as_str()).collect();
                return Err(Error::AmbiguousAgent(wanted.to_owned(), ids.join(", ")));
            }
        }
    }
    Err(Error::UnknownAgent(wanted.to_owned()))
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::agent::AgentSpec;
    use polyclaw_domain::id::AgentId;
    use polyclaw_domain::time::Millis;
    use polyclaw_store::agents::AgentSource;

    use super::*;

    #[test]
    fn fuzzy_agent_search_needs_unique_match() {
        let agents =
            [("ops", "Operations"), ("ops-night", "Night watch"), ("writer", "Ann")].map(|(id, name)| {
                let mut spec = AgentSpec::with_id(AgentId::parse(id).unwrap_or_else(|_| AgentId::main()));
                spec.name = name.to_owned();
                StoredAgent { spec, source: AgentSource::Api, created_at: Millis(0), updated_at: Millis(0) }
            });
        let loosely =
            |wanted: &str| find_agent_fuzzy(&agents, wanted).map(|found| found.spec.agent_id.to_string());
        for (wanted, id) in [
            ("ops", "ops"),
            ("OPS", "ops"),
            ("night", "ops-night"),
            ("ann", "writer"),
            ("writ", "writer"),
            (" Ann ", "writer"),
        ] {
            assert_eq!(loosely(wanted).ok().as_deref(), Some(id), "{wanted}");
        }
        assert!(matches!(loosely("op"), Err(Error::AmbiguousAgent(_, ids)) if ids == "ops, ops-night"));
        assert!(
            matches!(loosely(""), Err(Error::UnknownAgent(_)))
                && matches!(loosely("zzz"), Err(Error::UnknownAgent(_)))
        );
        let mut shown = agents.to_vec();
        shown[0].spec.identity.name = Some("Olga".into());
        assert_eq!(find_agent_exact(&shown, "Olga").unwrap().spec.agent_id.as_str(), "ops");
        shown[1].spec.identity.name = Some("Olga".into());
        assert!(matches!(find_agent_exact(&shown, "Olga"), Err(Error::AmbiguousAgent(..))));
        shown[1].spec.name = "writer".into();
        assert_eq!(find_agent_exact(&shown, "writer").unwrap().spec.name, "Ann", "an id comes before a name");
        assert!(
            find_agent_exact(&agents, "Operations").is_ok()
                && find_agent_exact(&agents, "operations").is_err()
        );
    }
}
