//! The sandbox: what it says is in force, each way it can be built, and that it refuses where it can not be.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use polyclaw_domain::agent::{SandboxMode, SandboxSettings};
use polyclaw_domain::sandbox::ProgramConfinement;
use polyclaw_tool::sandbox::NamespaceMode;
use polyclaw_tool::{BuiltinSettings, BuiltinToolbox};
use serde_json::json;

use crate::{Bench, confining};

/// A bench whose programs are confined in one way only.
pub fn by(way: NamespaceMode, mode: SandboxMode) -> Bench {
    let mut bench = Bench::new();
    let sandbox =
        polyclaw_tool::sandbox::SandboxLauncherSettings { ways: vec![way], ..confining(bench.home.path()) };
    bench.tools = BuiltinToolbox::new(BuiltinSettings { sandbox, ..BuiltinSettings::default() });
    bench.scope.sandbox.mode = mode;
    bench
}

/// The ways this user has: root is confined by namespaces or not at all.
pub fn ways() -> Vec<NamespaceMode> {
    let bubblewrap = Path::new("/usr/bin/bwrap");
    assert!(bubblewrap.exists(), "scripts/need.sh test installs bubblewrap");
    let namespaces = [NamespaceMode::Own, NamespaceMode::Bubblewrap(bubblewrap.to_owned())];
    namespaces.into_iter().chain((!is_root()).then_some(NamespaceMode::Bare)).collect()
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs a test of this file again as somebody without rights, which is how Polyclaw should run.
pub fn as_ordinary_user(test: &str) {
    if !is_root() {
        return;
    }
    let room = tempfile::tempdir().unwrap();
    std::fs::set_permissions(room.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    // The tree may lie in root's own folder, which nobody else can enter.
    let helper = room.path().join("polyclaw-sandbox");
    std::fs::copy(env!("CARGO_BIN_EXE_polyclaw-sandbox"), &helper).unwrap();
    let ran = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("TMPDIR", room.path())
        .env(crate::HELPER_VARIABLE, &helper)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn ordinary_user_is_confined_with_every_namespace_mode() {
    as_ordinary_user("confinement::reported_confinement_matches_enforcement");
    as_ordinary_user("confinement::common_commands_work_inside_sandbox");
    as_ordinary_user("confinement::priorities_and_foreign_attributes_cannot_be_set");
    as_ordinary_user("confinement::disk_quota_covers_all_writable_places");
    as_ordinary_user("confinement::released_shared_memory_still_counts_against_limit");
    as_ordinary_user("shell::background_children_end_with_the_command");
}

#[tokio::test]
async fn sandbox_helper_below_tmp_still_confines() {
    for way in ways() {
        let mut bench = by(way.clone(), SandboxMode::Workspace);
        let own = bench.home.path().join("polyclaw-sandbox");
        std::fs::copy(env!("CARGO_BIN_EXE_polyclaw-sandbox"), &own).unwrap();
        assert!(own.starts_with("/tmp"), "the test is about {}", own.display());
        let helper = vec![own.to_string_lossy().into_owned()];
        let ways = vec![way];
        let sandbox =
            polyclaw_tool::sandbox::SandboxLauncherSettings { helper, ways, ..confining(bench.home.path()) };
        bench.tools = BuiltinToolbox::new(BuiltinSettings { sandbox, ..BuiltinSettings::default() });
        assert_eq!(
            bench.ok("shell", json!({ "command": "echo ran; ls /tmp" })).await.lines().next(),
            Some("ran")
        );
        bench.refused("shell", json!({ "command": "cat ../secret" })).await;
    }
}

#[tokio::test]
async fn root_is_refused_without_namespaces() {
    let bench = by(NamespaceMode::Bare, SandboxMode::Workspace);
    let outcome = bench.call("shell", json!({ "command": "echo ran > ran" })).await;
    assert_eq!(bench.path("ran").exists(), !is_root(), "{}", outcome.content);
    assert_eq!(outcome.content.contains("ordinary user"), is_root(), "{}", outcome.content);
}

async fn facts(bench: &Bench, command: &str) -> (String, ProgramConfinement) {
    let outcome = bench.call("shell", json!({ "command": command })).await;
    let facts = outcome.facts.unwrap();
    assert_eq!(facts.mode, bench.scope.sandbox.mode);
    (outcome.content.clone(), *facts.program.unwrap_or_else(|| panic!("{}", outcome.content)))
}

#[tokio::test]
async fn reported_confinement_matches_enforcement() {
    for way in ways() {
        for mode in [SandboxMode::Workspace, SandboxMode::Strict] {
            let bench = by(way.clone(), mode);
            let (text, facts) = facts(&bench, "echo hello > made; cat made; ls / ; ulimit -c -n").await;
            assert!(text.starts_with("hello\n") && text.contains("Permission denied"), "{way:?}: {text}");
            assert!(facts.no_new_privs && facts.seccomp == 2 && facts.seccomp_filters >= 2, "{facts:?}");
            assert_outside_attributes_unchanged(&bench).await;
            assert!(!facts.tried.attributes);
            if way != NamespaceMode::Bare {
                bench.ok("shell", json!({ "command": "chmod 700 made && touch -d @1 made" })).await;
            }
            assert_eq!(facts.capabilities.trim_start_matches('0'), "");
            assert_eq!(facts.landlock.as_ref().unwrap().enforced, "fully");
            assert_eq!(facts.tried.network, mode == SandboxMode::Workspace);
            assert!(!facts.tried.outside && !facts.tried.unix_sockets);
            assert!(!facts.tried.machine && !facts.tried.listen, "{:?}", facts.tried);
            assert_eq!(facts.limits.core_bytes, Some(0));
            assert_eq!(facts.bubblewrap, matches!(way, NamespaceMode::Bubblewrap(_)));
            let own: Vec<&str> = facts.namespaces.iter().filter_map(|name| name.split(':').next()).collect();
            assert_eq!(own.is_empty(), way == NamespaceMode::Bare, "{own:?}");
            assert_eq!(
                own.contains(&"net"),
                way != NamespaceMode::Bare && mode == SandboxMode::Strict,
                "{own:?}"
            );
        }
    }
}

/// Landlock does not look at modes, owners and times; something else has to. Not below /tmp, which is another inside.
async fn assert_outside_attributes_unchanged(bench: &Bench) {
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = outside.path().join("file");
    std::fs::write(&path, "x").unwrap();
    let state = || {
        let meta = std::fs::metadata(&path).unwrap();
        (meta.mode(), meta.uid(), meta.mtime())
    };
    let before = state();
    for change in ["chmod 600", "chmod u+s", "touch -d @1", "chown 1", "chgrp 1"] {
        let command = format!("{change} {}", path.display());
        bench.refused("shell", json!({ "command": command })).await;
        assert_eq!(state(), before, "{command}");
    }
}

#[tokio::test]
async fn common_commands_work_inside_sandbox() {
    for way in ways() {
        let bench = by(way.clone(), SandboxMode::Workspace);
        for (command, wanted) in [
            ("mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && cat a/d && rm -r a", "x\n"),
            ("echo t > $TMPDIR/t && cat $TMPDIR/t", "t\n"),
            ("cat ~/f 2>/dev/null || echo y > ~/f && cat f", "y\n"),
            ("echo a | tr a b | (read v; echo $v)", "b\n"),
            ("perl -e 'print 6*7, \"\\n\"'", "42\n"),
            (
                "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m && git log --format=%s",
                "m\n",
            ),
            ("mkfifo p && (echo z > p &) && cat p", "z\n"),
            (
                "python3 -c 'import subprocess; print(subprocess.run([\"echo\",\"s\"], capture_output=True, text=True).stdout)'",
                "s\n",
            ),
            ("ln -s f l && cat l", "y\n"),
            ("i=0; while [ $i -lt 1500 ]; do /bin/true || exit 1; i=$((i+1)); done; echo $i", "1500\n"),
            ("getent hosts localhost >/dev/null; echo $?", "0\n"),
        ] {
            // Without walls nobody may change modes, and git does.
            if way == NamespaceMode::Bare && command.starts_with("git") {
                continue;
            }
            let text = bench.call("shell", json!({ "command": command })).await.content;
            assert!(text.starts_with(wanted), "{way:?}: {command}: {text}");
        }
    }
}

#[tokio::test]
async fn resource_limits_are_reported_and_enforced() {
    let mut bench = by(NamespaceMode::Own, SandboxMode::Strict);
    bench.scope.sandbox = SandboxSettings {
        mode: SandboxMode::Strict,
        memory_mb: Some(64),
        cpu_seconds: Some(2),
        processes: Some(20),
        file_mb: Some(1),
        ..SandboxSettings::default()
    };
    let (_, facts) = facts(&bench, "true").await;
    let limits = facts.limits;
    assert_eq!((limits.memory_mb, limits.cpu_seconds, limits.file_mb), (Some(64), Some(2), Some(1)));
    let text = bench.ok("shell", json!({ "command": "head -c 5000000 /dev/zero > big; ls -l big" })).await;
    assert_eq!(bench.path("big").metadata().unwrap().len(), 1024 * 1024, "{text}");
    let eat = "perl -e '$x = \"x\" x 200_000_000; print \"ate\"'";
    assert!(!bench.refused("shell", json!({ "command": eat })).await.contains("ate"));
    let together = "for i in 1 2 3 4 5 6; do perl -e '$x = \"x\" x 14_000_000; $x .= \"y\"; sleep 9' & done; wait; echo ate";
    let text = bench.refused("shell", json!({ "command": together })).await;
    assert!(text.contains("exceeded 64 MiB") || text.contains("exit status"), "{text}");
    assert!(!text.contains("ate"), "{text}");
    // Has an end of its own: where the limit fails, the machine must not.
    let many = "for i in $(seq 100); do sleep 3 & done; sleep 1; echo survived";
    let text = bench.refused("shell", json!({ "command": many })).await;
    assert!(!text.contains("survived"), "{text}");
    let spin =
        bench.refused("shell", json!({ "command": "while :; do :; done", "timeout_seconds": 30 })).await;
    assert!(spin.contains("signal"), "{spin}");
}

#[tokio::test]
async fn program_that_cannot_be_confined_does_not_run() {
    let mut bench = Bench::new();
    let settings = confining(bench.home.path());
    // Something that is to stay hidden lies in the workspace: no confinement can hold there.
    std::fs::write(bench.path("token"), "t").unwrap();
    let exposed = polyclaw_tool::sandbox::SandboxLauncherSettings {
        hidden: vec![bench.path("token")],
        ..settings.clone()
    };
    let gone = polyclaw_tool::sandbox::SandboxLauncherSettings {
        helper: vec!["/no/such/helper".to_owned()],
        ..settings.clone()
    };
    let wayless = polyclaw_tool::sandbox::SandboxLauncherSettings { ways: Vec::new(), ..settings };
    for sandbox in [exposed, gone, wayless] {
        bench.tools = BuiltinToolbox::new(BuiltinSettings { sandbox, ..BuiltinSettings::default() });
        let text = bench.refused("shell", json!({ "command": "echo ran > ran; echo ran" })).await;
        assert!(!text.contains("ran\n") && !bench.path("ran").exists(), "{text}");
    }
}

#[tokio::test]
async fn sandbox_run_leaves_no_temporary_files() {
    let bench = Bench::new();
    for _ in 0..5 {
        bench.ok("shell", json!({ "command": "echo x > /tmp/left; echo y > left" })).await;
    }
    assert!(!Path::new("/tmp/left").exists());
    for _ in 0..200 {
        if std::fs::read_dir(bench.home.path().join("tmp")).unwrap().count() == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("temporary folders are left");
}

#[tokio::test]
async fn file_tools_report_path_resolution() {
    let bench = Bench::new();
    for path in ["f", "../secret"] {
        let outcome = bench.call("read_file", json!({ "path": path })).await;
        let files = outcome.facts.unwrap().files.unwrap();
        assert!(files.resolved.contains("beneath"), "{files:?}");
    }
}

#[tokio::test]
async fn program_exceeding_disk_quota_is_stopped() {
    for way in ways() {
        let mut bench = by(way, SandboxMode::Workspace);
        bench.scope.sandbox.disk_mb = Some(20);
        // Many small files: no limit of one file sees them. It has an end of its own.
        let fill = "i=0; while [ $i -lt 3000 ]; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); sleep 0.01; done; echo filled";
        let text = bench.refused("shell", json!({ "command": fill })).await;
        assert!(text.contains("quota of 20 MiB") && !text.contains("filled\n"), "{text}");
        let text = bench.ok("shell", json!({ "command": "sleep 1; rm f*; echo removed" })).await;
        assert!(text.starts_with("removed"), "what makes room is not stopped: {text}");
    }
}

#[tokio::test]
async fn disk_quota_covers_all_writable_places() {
    let files =
        "i=0; while [ $i -lt 60 ]; do head -c 1000000 /dev/zero > $d/f$i; i=$((i+1)); sleep 0.05; done";
    let unlinked = "import os,time\n\
        held = []\n\
        for n in range(60):\n    \
            fd = os.open('gone', os.O_CREAT | os.O_RDWR)\n    \
            os.unlink('gone')\n    \
            os.write(fd, b'x' * 1000000)\n    \
            held.append(fd)\n    \
            time.sleep(0.05)\n";
    let deep = "import os,time\n\
        for n in range(25):\n    \
            os.mkdir('d' * 200)\n    \
            os.chdir('d' * 200)\n\
        for n in range(60):\n    \
            open('f%d' % n, 'wb').write(b'x' * 1000000)\n    \
            time.sleep(0.05)\n";
    for way in ways() {
        for (where_to, command) in [
            ("its temporary folder", format!("d=$TMPDIR; {files}; echo filled")),
            ("files without a name", format!("python3 -c \"{unlinked}\"; echo filled")),
            ("below a very long path", format!("python3 -c \"{deep}\"; echo filled")),
        ] {
            let mut bench = by(way.clone(), SandboxMode::Workspace);
            bench.scope.sandbox.disk_mb = Some(20);
            let outcome = bench.call("shell", json!({ "command": command })).await;
            let text = &outcome.content;
            assert!(text.contains("quota of 20 MiB"), "{way:?}, {where_to}: {text}");
            if where_to == "below a very long path" {
                let write = json!({ "path": "more", "content": "x".repeat(4_000_000) });
                let refused = bench.refused("write_file", write).await;
                assert!(refused.contains("quota"), "{refused}");
            }
        }
    }
}

#[tokio::test]
async fn released_shared_memory_still_counts_against_limit() {
    let hold = "import mmap,time\n\
        held = []\n\
        for n in range(30):\n    \
            m = mmap.mmap(-1, 16 << 20)\n    \
            m.write(b'x' * (16 << 20))\n    \
            m.madvise(mmap.MADV_DONTNEED)\n    \
            held.append(m)\n    \
            time.sleep(0.05)\n\
        print('held')\n";
    for way in ways() {
        let mut bench = by(way.clone(), SandboxMode::Workspace);
        bench.scope.sandbox.memory_mb = Some(64);
        let text = bench.refused("shell", json!({ "command": format!("python3 -c \"{hold}\"") })).await;
        assert!(text.contains("64 MiB") && !text.contains("held\n"), "{way:?}: {text}");
    }
}

#[tokio::test]
async fn priorities_and_foreign_attributes_cannot_be_set() {
    // 251 is ioprio_set on x86_64 and 30 elsewhere; 463, 466 and 469 set attributes of a path.
    let tries = "import ctypes,os,platform\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        def refused(*words):\n    \
            ctypes.set_errno(0)\n    \
            return libc.syscall(*words) == -1 and ctypes.get_errno() == 1\n\
        def denied(which):\n    \
            try:\n        \
                os.setpriority(which, 0, 10)\n    \
            except PermissionError:\n        \
                return True\n\
        io = 251 if platform.machine() == 'x86_64' else 30\n\
        print(denied(os.PRIO_USER), denied(os.PRIO_PGRP), denied(os.PRIO_PROCESS))\n\
        print(refused(io, 3, 0, 0), refused(io, 2, 0, 0), libc.syscall(io, 1, 0, 16388))\n\
        print([refused(call, -100, b'/x', 0, b'user.x', 0, 0) for call in (463, 466, 469)])\n";
    for way in ways() {
        let bench = by(way.clone(), SandboxMode::Workspace);
        std::fs::write(bench.path("try.py"), tries).unwrap();
        let text = bench.ok("shell", json!({ "command": "python3 try.py" })).await;
        assert!(text.starts_with("True True None\nTrue True 0\n"), "{way:?}: {text}");
        if way == NamespaceMode::Bare {
            assert!(text.contains("[True, True, True]"), "{text}");
        }
    }
}
