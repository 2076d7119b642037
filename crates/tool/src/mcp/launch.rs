//! Prepares the launch of a server program so that agents cannot influence what it runs: working folder, environment
//! and hidden paths.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use polyclaw_domain::config::McpSandbox;

use super::settings::ServerProgram;
use crate::agent_folders::{AgentFolders, paths_in, resolved, safe_search_path};
use crate::sandbox::SandboxGrants;

/// Variables for user and locale. They contain no secrets.
const PASSED_VARIABLES: [&str; 4] = ["USER", "LANG", "LC_ALL", "TZ"];
/// Variables for unconfined programs only. A confined one has its own home and temporary folder.
const UNCONFINED_VARIABLES: [&str; 2] = ["HOME", "TMPDIR"];
/// Variables that name folders to load code from.
const CODE_PATH_VARIABLES: [&str; 9] = [
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PERL5LIB",
    "RUBYLIB",
    "CLASSPATH",
];
/// Credentials and histories below the user's home.
const CREDENTIAL_PATHS: [&str; 29] = [
    ".aws",
    ".azure",
    ".bash_history",
    ".cache/huggingface/token",
    ".cargo/credentials.toml",
    ".config/chromium",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/google-chrome",
    ".config/rclone",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".mysql_history",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".polyclaw",
    ".psql_history",
    ".pypirc",
    ".python_history",
    ".ssh",
    ".vault-token",
    ".zsh_history",
];

/// Launch parameters of a program.
#[derive(Debug)]
pub struct ServerLaunch {
    /// The program's own writable folder.
    pub folder: PathBuf,
    /// The working folder.
    pub cwd: PathBuf,
    pub grants: SandboxGrants,
}

/// Creates the program's folder and refuses settings that would let an agent plant code for it.
pub fn prepare_launch(program: &ServerProgram) -> Result<ServerLaunch, String> {
    let folder = own_folder(&program.folder)
        .map_err(|error| format!("cannot create its folder {}: {error}", program.folder.display()))?;
    let cwd = working_folder(program, &folder)?;
    if program.command.contains('/') && is_written_by_agents(Path::new(&program.command), program, &folder) {
        return Err(format!("{} is in a folder that agents can write: move it elsewhere", program.command));
    }
    if let Some(word) = planted_argument(program, &cwd, &folder) {
        return Err(format!(
            "its argument {word:?} is a path that agents can write, and the server could run files placed there \
             with access to its secrets: move the file elsewhere; if it is only data, list it in readable or \
             writable"
        ));
    }
    for (name, value) in program.env.iter().filter(|(name, _)| CODE_PATH_VARIABLES.contains(&name.as_str())) {
        let entries = std::env::split_paths(value).filter(|entry| entry.is_absolute());
        if let Some(entry) = entries.into_iter().find(|entry| is_written_by_agents(entry, program, &folder)) {
            return Err(format!("its {name} contains {}, a folder that agents can write", entry.display()));
        }
    }
    let environment = Some(server_environment(program, &folder));
    let mut readable = program.readable.clone();
    readable.extend(named_paths(program));
    readable.push(cwd.clone());
    let hidden = hidden_paths(program);
    let opens_hidden = |path: &PathBuf| hidden.iter().any(|hidden| hidden.starts_with(path));
    readable.retain(|path| program.readable.contains(path) || !opens_hidden(path));
    if let Some(missing) = program.writable.iter().find(|path| !path.exists()) {
        return Err(format!("its writable path {} does not exist", missing.display()));
    }
    let writable = program.writable.clone();
    Ok(ServerLaunch { folder, cwd, grants: SandboxGrants { readable, writable, hidden, environment } })
}

fn own_folder(folder: &Path) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    folder.canonicalize()
}

fn working_folder(program: &ServerProgram, folder: &Path) -> Result<PathBuf, String> {
    let Some(named) = &program.cwd else { return Ok(folder.to_owned()) };
    let cwd = match (named.strip_prefix("~/"), &program.host.user_home) {
        (Some(below), Some(home)) => home.join(below),
        _ => folder.join(named),
    };
    let cwd = cwd.canonicalize().map_err(|error| format!("cannot use its cwd {named:?}: {error}"))?;
    if is_written_by_agents(&cwd, program, folder) {
        return Err(format!(
            "its cwd {named:?} is in a folder that agents can write, and the server could load files placed there: \
             use another folder, or omit cwd to use a folder of its own"
        ));
    }
    Ok(cwd)
}

/// Returns an argument that names a place writable by agents, such as a script for an interpreter. Paths that the
/// config opens by name are the operator's decision.
fn planted_argument<'a>(program: &'a ServerProgram, cwd: &Path, own: &Path) -> Option<&'a String> {
    let opened = program.readable.iter().chain(&program.writable);
    let opened: Vec<PathBuf> =
        opened.map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect();
    let is_planted = |named: &str| {
        let path = resolved(&cwd.join(named));
        is_written_by_agents(&path, program, own) && !opened.iter().any(|by| path.starts_with(by))
    };
    program.args.iter().find(|word| paths_in(word).any(is_planted))
}

/// Returns whether a path is in a workspace or elsewhere in the instance's home. A path that does not exist yet is checked
/// by its name.
fn is_written_by_agents(path: &Path, program: &ServerProgram, own: &Path) -> bool {
    let folders = program.host.workspaces.iter().chain([&program.host.home]).cloned();
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    !path.starts_with(own) && AgentFolders::new(folders).contains(&path)
}

/// Returns the configured variables and the few that programs need.
fn server_environment(program: &ServerProgram, folder: &Path) -> Vec<(String, String)> {
    let passed_on = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    let mut environment: Vec<_> = PASSED_VARIABLES.iter().filter_map(passed_on).collect();
    if program.sandbox == McpSandbox::Off {
        environment.extend(UNCONFINED_VARIABLES.iter().filter_map(passed_on));
    }
    environment
        .push(("PATH".to_owned(), safe_search_path(|entry| is_written_by_agents(entry, program, folder))));
    // Otherwise Python would load modules from the working folder before its own.
    environment.push(("PYTHONSAFEPATH".to_owned(), "1".to_owned()));
    environment.retain(|(name, _)| !program.env.contains_key(name));
    environment.extend(program.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    environment
}

/// Returns the existing paths among its arguments, which the operator allows to be read by naming them.
fn named_paths(program: &ServerProgram) -> impl Iterator<Item = PathBuf> {
    let words = std::iter::once(&program.command).chain(&program.args).map(Path::new);
    words.filter(|path| path.is_absolute()).filter_map(|path| path.canonicalize().ok())
}

/// Returns the paths hidden from the program, except those that the config opens by name.
fn hidden_paths(program: &ServerProgram) -> Vec<PathBuf> {
    let host = &program.host;
    let credentials =
        host.user_home.iter().flat_map(|home| CREDENTIAL_PATHS.iter().map(move |name| home.join(name)));
    let all = credentials.chain(host.workspaces.iter().cloned()).filter_map(|path| path.canonicalize().ok());
    let opened: Vec<&PathBuf> = program.readable.iter().chain(&program.writable).collect();
    let is_opened = |path: &PathBuf| opened.iter().any(|by| path.starts_with(by));
    all.filter(|path| !is_opened(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::settings::McpHost;

    fn program(root: &Path, change: impl FnOnce(&mut ServerProgram)) -> ServerProgram {
        let home = root.join("home");
        let workspaces = vec![home.join("workspace"), root.join("elsewhere")];
        for folder in workspaces.iter().chain([&root.join("user/.ssh"), &root.join("srv")]) {
            std::fs::create_dir_all(folder).unwrap();
        }
        let host = McpHost {
            home: home.clone(),
            workspaces,
            user_home: Some(root.join("user")),
            ..McpHost::default()
        };
        let mut program = ServerProgram {
            command: "node".to_owned(),
            args: Vec::new(),
            env: [].into(),
            cwd: None,
            sandbox: McpSandbox::Confined,
            readable: Vec::new(),
            writable: Vec::new(),
            folder: home.join("mcp/lab"),
            host,
        };
        change(&mut program);
        program
    }

    #[test]
    fn mcp_server_starts_in_its_own_folder() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap();
        let launch = prepare_launch(&program(&root, |_| {})).unwrap();
        assert_eq!((&launch.cwd, &launch.folder), (&root.join("home/mcp/lab"), &root.join("home/mcp/lab")));
        let environment = launch.grants.environment.unwrap();
        let has = |name: &str| environment.iter().any(|(key, _)| key == name);
        assert!(has("PATH") && has("PYTHONSAFEPATH") && !has("HOME"), "{environment:?}");
        assert!(launch.grants.hidden.contains(&root.join("user/.ssh")));
        assert!(launch.grants.hidden.contains(&root.join("elsewhere")));
    }

    #[test]
    fn agent_writable_folders_are_refused_at_launch() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap();
        let text = |path: &str| root.join(path).to_string_lossy().into_owned();
        std::fs::create_dir_all(root.join("elsewhere/bin")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("link")).unwrap();
        for cwd in
            [text("elsewhere"), text("elsewhere/bin"), text("link"), text("home/workspace"), text("home")]
        {
            let refused =
                prepare_launch(&program(&root, |program| program.cwd = Some(cwd.clone()))).unwrap_err();
            assert!(refused.contains("agents can write"), "{cwd}: {refused}");
        }
        for name in ["PATH", "PYTHONPATH", "NODE_PATH", "LD_PRELOAD"] {
            let value = format!("/usr/bin:{}", text("elsewhere/bin"));
            let refused =
                prepare_launch(&program(&root, |program| program.env = [(name.to_owned(), value)].into()));
            assert!(refused.unwrap_err().contains(name));
        }
        let command = text("elsewhere/bin/server");
        assert!(prepare_launch(&program(&root, |program| program.command = command)).is_err());
        assert_eq!(
            prepare_launch(&program(&root, |program| program.cwd = Some(text("srv")))).unwrap().cwd,
            root.join("srv")
        );
    }

    #[test]
    fn arguments_in_agent_writable_folders_are_refused() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap();
        let text = |path: &str| root.join(path).to_string_lossy().into_owned();
        let start = |word: &str, open: bool| {
            prepare_launch(&program(&root, |program| {
                program.args = vec!["-u".to_owned(), word.to_owned()];
                program.writable.extend(open.then(|| root.join("elsewhere")));
            }))
        };
        prepare_launch(&program(&root, |_| {})).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("srv/link")).unwrap();
        for word in [
            text("home/workspace/server.py"),
            text("elsewhere/not/there/yet.js"),
            text("srv/link/server.py"),
            format!("--require={}", text("elsewhere/hook.js")),
            format!("-I{}", text("elsewhere")),
            format!("file://{}", text("elsewhere/server.mjs")),
            format!("{}:{}", text("srv"), text("elsewhere")),
            "../../workspace/server.py".to_owned(),
        ] {
            let refused = start(&word, false).unwrap_err();
            assert!(
                refused.contains("agents can write") && refused.contains("move the file"),
                "{word}: {refused}"
            );
        }
        for word in [text("srv/server.py"), text("home/mcp/lab/data.db"), "@scope/server@1.2".to_owned()] {
            start(&word, false).unwrap();
        }
        start("https://example.org/home/workspace", false).unwrap();
        start(&text("elsewhere/documents"), true).unwrap();
    }

    #[test]
    fn configured_readable_paths_are_not_hidden() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap();
        let ssh = root.join("user/.ssh");
        let open = prepare_launch(&program(&root, |program| program.readable = vec![ssh.clone()])).unwrap();
        assert!(open.grants.readable.contains(&ssh) && !open.grants.hidden.contains(&ssh));
        let user = root.join("user").to_string_lossy().into_owned();
        let named = prepare_launch(&program(&root, |program| program.args = vec![user])).unwrap();
        assert!(!named.grants.readable.contains(&root.join("user")), "an argument opens nothing hidden");
    }
}
