//! MCP servers: the names of their tools here, and their status.

use serde::{Deserialize, Serialize};

/// Maximum length of a tool name that the models of all providers accept.
const MAX_TOOL_NAME_LEN: usize = 64;

/// The status of a server, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct McpServerStatus {
    pub name: String,
    pub transport: &'static str,
    /// Sandbox of its program: `confined` or `off`. `None` for a remote service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<&'static str>,
    pub state: McpServerState,
    /// The server's own name and version.
    pub version: Option<String>,
    /// Its tools by the names that agents use.
    pub tools: Vec<String>,
    /// Number of restarts after it ended or could not be reached.
    pub restarts: u64,
    /// Why it is down.
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    /// Not needed yet.
    Idle,
    Starting,
    Ready,
    /// Will be retried later.
    Down,
}

/// The port for the API.
pub trait McpServerRegistry: Send + Sync {
    fn server_statuses(&self) -> Vec<McpServerStatus>;
}

/// Returns whether a text is a server name. It has no `_`, so that `mcp_<server>_` is never a prefix of another
/// server's tools.
pub fn is_server_name(text: &str) -> bool {
    text.len() <= 32
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Returns the names under which a server's tools are offered: `mcp_<server>_<tool>`, in the order of `tools`. A name
/// that is too long or ambiguous ends in a hash of the original name, so that it is stable.
pub fn mcp_tool_names<'a>(server: &str, tools: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let plain = |tool: &str| {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        format!("mcp_{server}_{}", tool.chars().map(allowed).collect::<String>())
    };
    let all: Vec<String> = tools.clone().map(plain).collect();
    let named = tools.zip(&all).map(|(tool, name)| {
        let is_shared = all.iter().filter(|other| *other == name).count() > 1;
        if !is_shared && name.len() <= MAX_TOOL_NAME_LEN {
            return name.clone();
        }
        let mark = format!("_{:08x}", hash_name(tool));
        format!("{}{mark}", &name[..name.len().min(MAX_TOOL_NAME_LEN - mark.len())])
    });
    named.collect()
}

/// FNV-1a: small, and the same on every machine and in every version.
fn hash_name(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(server: &str, tools: &[&str]) -> Vec<String> {
        mcp_tool_names(server, tools.iter().copied())
    }

    #[test]
    fn mcp_tool_names_have_server_prefix_and_valid_characters() {
        assert_eq!(names("files", &["read", "get-sum"]), ["mcp_files_read", "mcp_files_get-sum"]);
        assert_eq!(names("x", &["a.b", "ü", ""]), ["mcp_x_a_b", "mcp_x__", "mcp_x_"]);
        let odd = names("x", &["a.b", "a b", "a_b"]);
        assert!(odd.iter().all(|name| name.starts_with("mcp_x_a_b_") && name.len() == 18), "{odd:?}");
        assert_ne!(odd[0], odd[1]);
        assert_eq!(names("x", &["a b", "a.b"])[1], odd[0], "the order does not matter");
        for name in names("server", &[&"n".repeat(10_000), &"\u{202e}\n".repeat(5_000)]) {
            assert!(name.len() <= 64, "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')), "{name}");
        }
    }

    #[test]
    fn invalid_mcp_server_names_are_refused() {
        assert!(is_server_name("git-hub2"));
        for bad in ["a_b", "", "A", "1a", "a b", &"a".repeat(33)] {
            assert!(!is_server_name(bad), "{bad}");
        }
    }
}
