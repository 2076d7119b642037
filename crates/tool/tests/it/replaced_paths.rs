//! A program of an agent exchanges files and folders with links while the daemon uses them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use polyclaw_domain::agent::SkillPolicy;
use polyclaw_domain::briefing::{Briefing, BriefingReader, BriefingSource};
use polyclaw_domain::id::AgentId;
use polyclaw_tool::{BuiltinSettings, BuiltinToolbox, FileBriefings, SharedSkills};
use rustix::fs::{CWD, RenameFlags};
use serde_json::json;

use crate::Bench;

/// Exchanges two names as fast as it can.
struct NameExchange {
    ends: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl NameExchange {
    fn start(one: &Path, other: &Path) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (until, one, other) = (Arc::clone(&ends), one.to_owned(), other.to_owned());
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for NameExchange {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// A bench whose workspace is the instance's, with what its agent reads.
fn bench_with_briefings() -> (Bench, Arc<FileBriefings>) {
    let mut bench = Bench::new();
    let home = bench.home.path();
    let briefings = Arc::new(FileBriefings::new(home.join("ws"), home.join("skills")));
    let settings = BuiltinSettings { briefings: Some(Arc::clone(&briefings)), ..BuiltinSettings::default() };
    bench.tools = BuiltinToolbox::new(settings);
    (bench, briefings)
}

fn load_briefing(bench: &Bench, briefings: &FileBriefings) -> Briefing {
    let (agent, skills) = (AgentId::main(), SkillPolicy::default());
    briefings.load_briefing(&BriefingReader {
        agent: &agent,
        workspace: &bench.scope.workspace,
        skills: &skills,
        overlay: true,
        is_sub_agent: false,
    })
}

fn write_skill(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let name = folder.file_name().unwrap().to_str().unwrap();
    fs::write(folder.join("SKILL.md"), format!("---\nname: {name}\ndescription: x\n---\nDo it.\n")).unwrap();
}

#[tokio::test]
async fn skill_is_not_read_from_replaced_skills_folder() {
    let (bench, _) = bench_with_briefings();
    let outside = bench.home.path().join("outside");
    fs::create_dir_all(outside.join("cp")).unwrap();
    fs::write(outside.join("cp/token"), "control-plane-token").unwrap();
    write_skill(&bench.path("skills/cp"));
    symlink(&outside, bench.path("skills.link")).unwrap();
    let exchange = NameExchange::start(&bench.path("skills"), &bench.path("skills.link"));
    let (end, mut read) = (Instant::now() + Duration::from_secs(6), 0);
    while Instant::now() < end {
        let token = bench.call("read_skill", json!({ "name": "cp", "path": "token" })).await;
        assert!(!token.content.contains("control-plane-token"), "a file outside the workspace was read");
        read += usize::from(!bench.call("read_skill", json!({ "name": "cp" })).await.is_error);
    }
    drop(exchange);
    assert!(read > 0, "the skill itself can be read");
}

/// As a workspace inside another agent's would be.
#[tokio::test]
async fn tools_do_not_use_a_replaced_workspace_folder() {
    let (mut bench, _) = bench_with_briefings();
    bench.tools = BuiltinToolbox::new(BuiltinSettings {
        sandbox: crate::confining(bench.home.path()),
        ..BuiltinSettings::default()
    });
    let (inner, outside) = (bench.path("inner"), bench.home.path().join("outside"));
    for folder in [&inner, &outside] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(outside.join("token"), "control-plane-token").unwrap();
    fs::write(inner.join("note"), "mine").unwrap();
    symlink(&outside, bench.path("link")).unwrap();
    let exchange = NameExchange::start(&inner, &bench.path("link"));
    bench.scope.workspace = inner;
    let (end, mut done) = (Instant::now() + Duration::from_secs(6), 0);
    while Instant::now() < end {
        let shell = bench.call("shell", json!({ "command": "cat token; echo x > made; cat note" })).await;
        let read = bench.call("read_file", json!({ "path": "token" })).await;
        bench.call("write_file", json!({ "path": "made", "content": "x" })).await;
        for outcome in [&shell, &read] {
            assert!(!outcome.content.contains("control-plane-token"), "a file outside was read");
        }
        assert!(!outside.join("made").exists(), "a file was written outside");
        done += usize::from(shell.content.contains("mine"));
    }
    drop(exchange);
    assert!(done > 0, "commands run in the workspace itself");
}

/// The second name of the file stands for one that was looked at just before the folder was exchanged.
#[test]
fn bootstrap_is_not_removed_from_replaced_overlay_folder() {
    let (bench, briefings) = bench_with_briefings();
    let (own, outside) = (bench.path("agents/main"), bench.home.path().join("outside"));
    for folder in [&own, &outside] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(own.join("BOOTSTRAP.md"), "mine").unwrap();
    fs::hard_link(own.join("BOOTSTRAP.md"), outside.join("BOOTSTRAP.md")).unwrap();
    let found = load_briefing(&bench, &briefings).bootstrap.unwrap();
    fs::rename(&own, bench.path("agents/away")).unwrap();
    symlink(&outside, &own).unwrap();
    briefings.complete_bootstrap(&found);
    assert!(outside.join("BOOTSTRAP.md").exists(), "a file outside the workspace was removed");
    fs::remove_file(&own).unwrap();
    fs::rename(bench.path("agents/away"), &own).unwrap();
    briefings.complete_bootstrap(&found);
    assert!(!own.join("BOOTSTRAP.md").exists(), "its own is removed");
}

#[test]
fn shared_skill_folder_replaced_by_symlink_is_not_followed() {
    let (bench, briefings) = bench_with_briefings();
    let outside = bench.home.path().join("outside");
    write_skill(&outside.join("planted"));
    let folders = vec![bench.path("team")];
    briefings.set_shared_skills(SharedSkills { folders, ..SharedSkills::default() });
    write_skill(&bench.path("team/good"));
    assert!(load_briefing(&bench, &briefings).skill_list.contains("good"));
    fs::rename(bench.path("team"), bench.path("away")).unwrap();
    symlink(&outside, bench.path("team")).unwrap();
    std::thread::sleep(Duration::from_millis(12));
    let list = load_briefing(&bench, &briefings).skill_list;
    assert!(!list.contains("planted"), "{list}");
}
