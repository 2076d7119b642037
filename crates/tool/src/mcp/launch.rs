//! How a server's program is started so that no agent has a say in what it runs: where it starts, what is in its
//! environment, and what is hidden from it.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use polyclaw_domain::config::McpSandbox;

use super::settings::ServerProgram;
use crate::sandbox::Grants;

/// Variables that programs need to know who runs them, and in which language. Nothing secret is in them.
const PASSED_ON: [&str; 4] = ["USER", "LANG", "LC_ALL", "TZ"];
/// A confined program has a home and a temporary folder of its own.
const PASSED_ON_UNCONFINED: [&str; 2] = ["HOME", "TMPDIR"];
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Variables that name folders to load code from.
const SEARCH_PATHS: [&str; 9] = [
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
/// Below the user's home, what keys and histories are kept in.
const CREDENTIALS: [&str; 25] = [
    ".aws",
    ".azure",
    ".bash_history",
    ".cargo/credentials.toml",
    ".config/chromium",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
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
    ".zsh_history",
];

/// What a program is started with.
#[derive(Debug)]
pub struct Launch {
    /// Its own folder, which it may write.
    pub folder: PathBuf,
    /// Where it starts.
    pub cwd: PathBuf,
    pub grants: Grants,
}

/// Makes the program's folder and refuses what would let an agent plant code for it.
pub fn prepare(program: &ServerProgram) -> Result<Launch, String> {
    let folder = own_folder(&program.folder)
        .map_err(|error| format!("its folder {} can not be made: {error}", program.folder.display()))?;
    let cwd = cwd(program, &folder)?;
    if program.command.contains('/') && is_written_by_agents(Path::new(&program.command), program, &folder) {
        return Err(format!("{} lies in a folder that agents write: move it elsewhere", program.command));
    }
    for (name, value) in program.env.iter().filter(|(name, _)| SEARCH_PATHS.contains(&name.as_str())) {
        let entries = std::env::split_paths(value).filter(|entry| entry.is_absolute());
        if let Some(entry) = entries.into_iter().find(|entry| is_written_by_agents(entry, program, &folder)) {
            return Err(format!("its {name} names {}, a folder that agents write", entry.display()));
        }
    }
    let environment = Some(environment(program, &folder));
    let mut readable = program.readable.clone();
    readable.extend(named_paths(program));
    readable.push(cwd.clone());
    let hidden = hidden(program);
    let opens_hidden = |path: &PathBuf| hidden.iter().any(|hidden| hidden.starts_with(path));
    readable.retain(|path| program.readable.contains(path) || !opens_hidden(path));
    if let Some(missing) = program.writable.iter().find(|path| !path.exists()) {
        return Err(format!("{} of its writable paths is not there", missing.display()));
    }
    let writable = program.writable.clone();
    Ok(Launch { folder, cwd, grants: Grants { readable, writable, hidden, environment } })
}

fn own_folder(folder: &Path) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    folder.canonicalize()
}

fn cwd(program: &ServerProgram, folder: &Path) -> Result<PathBuf, String> {
    let Some(named) = &program.cwd else { return Ok(folder.to_owned()) };
    let cwd = match (named.strip_prefix("~/"), &program.host.user_home) {
        (Some(below), Some(home)) => home.join(below),
        _ => folder.join(named),
    };
    let cwd = cwd.canonicalize().map_err(|error| format!("its cwd {named:?} can not be used: {error}"))?;
    if is_written_by_agents(&cwd, program, folder) {
        return Err(format!(
            "its cwd {named:?} lies in a folder that agents write, and could load what they put there: name another \
             folder, or leave cwd out for one of its own"
        ));
    }
    Ok(cwd)
}

/// Whether a path lies in a workspace, or elsewhere in the instance's home. What is not there yet is judged by its name.
fn is_written_by_agents(path: &Path, program: &ServerProgram, own: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let path = real(path);
    let mut folders = program.host.workspaces.iter().chain([&program.host.home]);
    !path.starts_with(own) && folders.any(|folder| path.starts_with(real(folder)))
}

/// Only what is configured, and the few variables that programs need.
fn environment(program: &ServerProgram, folder: &Path) -> Vec<(String, String)> {
    let passed_on = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    let mut environment: Vec<_> = PASSED_ON.iter().filter_map(passed_on).collect();
    if program.sandbox == McpSandbox::Off {
        environment.extend(PASSED_ON_UNCONFINED.iter().filter_map(passed_on));
    }
    environment.push(("PATH".to_owned(), search_path(program, folder)));
    // Python would else load modules from where it starts before its own.
    environment.push(("PYTHONSAFEPATH".to_owned(), "1".to_owned()));
    environment.retain(|(name, _)| !program.env.contains_key(name));
    environment.extend(program.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    environment
}

/// The daemon's own, without what is relative or written by agents.
fn search_path(program: &ServerProgram, folder: &Path) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let entries = std::env::split_paths(&path);
    let kept = entries.filter(|entry| entry.is_absolute() && !is_written_by_agents(entry, program, folder));
    let kept = std::env::join_paths(kept).ok().and_then(|path| path.into_string().ok());
    kept.filter(|path| !path.is_empty()).unwrap_or_else(|| USUAL_PATH.to_owned())
}

/// Paths among its words that are there: what the operator names is to be read.
fn named_paths(program: &ServerProgram) -> impl Iterator<Item = PathBuf> {
    let words = std::iter::once(&program.command).chain(&program.args).map(Path::new);
    words.filter(|path| path.is_absolute()).filter_map(|path| path.canonicalize().ok())
}

/// Closed to it, unless the config opens it by name.
fn hidden(program: &ServerProgram) -> Vec<PathBuf> {
    let host = &program.host;
    let credentials =
        host.user_home.iter().flat_map(|home| CREDENTIALS.iter().map(move |name| home.join(name)));
    let all = credentials.chain(host.workspaces.iter().cloned()).filter_map(|path| path.canonicalize().ok());
    let opened: Vec<&PathBuf> = program.readable.iter().chain(&program.writable).collect();
    let is_opened = |path: &PathBuf| opened.iter().any(|by| path.starts_with(by));
    all.filter(|path| !is_opened(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::settings::ServerHost;

    fn program(root: &Path, change: impl FnOnce(&mut ServerProgram)) -> ServerProgram {
        let home = root.join("home");
        let workspaces = vec![home.join("workspace"), root.join("elsewhere")];
        for folder in workspaces.iter().chain([&root.join("user/.ssh"), &root.join("srv")]) {
            std::fs::create_dir_all(folder).unwrap();
        }
        let host = ServerHost {
            home: home.clone(),
            workspaces,
            user_home: Some(root.join("user")),
            ..ServerHost::default()
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
    fn it_starts_in_a_folder_of_its_own() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap();
        let launch = prepare(&program(&root, |_| {})).unwrap();
        assert_eq!((&launch.cwd, &launch.folder), (&root.join("home/mcp/lab"), &root.join("home/mcp/lab")));
        let environment = launch.grants.environment.unwrap();
        let has = |name: &str| environment.iter().any(|(key, _)| key == name);
        assert!(has("PATH") && has("PYTHONSAFEPATH") && !has("HOME"), "{environment:?}");
        assert!(launch.grants.hidden.contains(&root.join("user/.ssh")));
        assert!(launch.grants.hidden.contains(&root.join("elsewhere")));
    }

    #[test]
    fn folders_that_agents_write_are_refused() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap();
        let text = |path: &str| root.join(path).to_string_lossy().into_owned();
        std::fs::create_dir_all(root.join("elsewhere/bin")).unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("link")).unwrap();
        for cwd in
            [text("elsewhere"), text("elsewhere/bin"), text("link"), text("home/workspace"), text("home")]
        {
            let refused = prepare(&program(&root, |program| program.cwd = Some(cwd.clone()))).unwrap_err();
            assert!(refused.contains("agents write"), "{cwd}: {refused}");
        }
        for name in ["PATH", "PYTHONPATH", "NODE_PATH", "LD_PRELOAD"] {
            let value = format!("/usr/bin:{}", text("elsewhere/bin"));
            let refused = prepare(&program(&root, |program| program.env = [(name.to_owned(), value)].into()));
            assert!(refused.unwrap_err().contains(name));
        }
        let command = text("elsewhere/bin/server");
        assert!(prepare(&program(&root, |program| program.command = command)).is_err());
        assert_eq!(
            prepare(&program(&root, |program| program.cwd = Some(text("srv")))).unwrap().cwd,
            root.join("srv")
        );
    }

    #[test]
    fn what_the_config_opens_is_not_hidden() {
        let room = tempfile::tempdir().unwrap();
        let root = room.path().canonicalize().unwrap();
        let ssh = root.join("user/.ssh");
        let open = prepare(&program(&root, |program| program.readable = vec![ssh.clone()])).unwrap();
        assert!(open.grants.readable.contains(&ssh) && !open.grants.hidden.contains(&ssh));
        let user = root.join("user").to_string_lossy().into_owned();
        let named = prepare(&program(&root, |program| program.args = vec![user])).unwrap();
        assert!(!named.grants.readable.contains(&root.join("user")), "an argument opens nothing hidden");
    }
}
