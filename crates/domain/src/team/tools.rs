//! Names of the team tools. Each has an alias besides the name it is listed under.

pub const TEAM_CREATE: &str = "TeamCreate";
pub const TEAMMATE_SPAWN: &str = "TeammateSpawn";
pub const TEAM_SHUTDOWN: &str = "TeamShutdown";
pub const TASK_CREATE: &str = "TaskCreate";
pub const TASK_LIST: &str = "TaskList";
pub const TASK_CLAIM: &str = "TaskClaim";
pub const TASK_UPDATE: &str = "TaskUpdate";
pub const TASK_COMPLETE: &str = "TaskComplete";
pub const SEND_MESSAGE: &str = "SendMessage";
pub const TEAM_STATUS: &str = "TeamStatus";

const TOOL_ALIASES: [(&str, &str); 10] = [
    (TEAM_CREATE, "team_create"),
    (TEAMMATE_SPAWN, "teammate_spawn"),
    (TEAM_SHUTDOWN, "team_shutdown"),
    (TASK_CREATE, "task_create"),
    (TASK_LIST, "task_list"),
    (TASK_CLAIM, "task_claim"),
    (TASK_UPDATE, "task_update"),
    (TASK_COMPLETE, "task_complete"),
    (SEND_MESSAGE, "send_message"),
    (TEAM_STATUS, "team_status"),
];

/// Returns the alias of a listed tool.
pub fn tool_alias(listed: &str) -> Option<&'static str> {
    TOOL_ALIASES.iter().find(|(name, _)| *name == listed).map(|(_, alias)| *alias)
}

/// Returns the listed name of an alias.
pub fn listed_tool_name(alias: &str) -> Option<&'static str> {
    TOOL_ALIASES.iter().find(|(_, other)| *other == alias).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_aliases_map_both_ways() {
        for (name, other) in TOOL_ALIASES {
            assert_eq!((tool_alias(name), listed_tool_name(other)), (Some(other), Some(name)));
        }
        assert_eq!((tool_alias("shell"), listed_tool_name("shell")), (None, None));
    }
}
