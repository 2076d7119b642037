//! Machine-wide files and listening sockets: closed to confined programs, whoever the daemon runs as. Files are only
//! opened, never written: they belong to the whole machine.

use polyclaw_domain::agent::{SandboxMode, ToolIsolation};
use polyclaw_tool::sandbox::NamespaceMode;
use serde_json::json;

use crate::Bench;
use crate::confinement::{by, ways};
use crate::worker::{shop, usual};

/// Prints the name of each machine-wide file that opens: for writing, or at all where it tells about the kernel.
const OPEN_MACHINE_FILES: &str = r#"
import glob, os
writable = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/pid_max", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/suid_dumpable",
    "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/1/oom_score_adj"]
writable += glob.glob("/proc/irq/default_smp_affinity") + glob.glob("/sys/kernel/*") + glob.glob("/sys/devices/system/cpu/*/online")
readable = ["/proc/" + name for name in ("kpageflags", "kpagecount", "slabinfo", "timer_list", "keys", "key-users", "vmallocinfo", "kallsyms", "iomem", "kcore", "kmsg")]
def opens(path, flags):
    try:
        os.close(os.open(path, flags))
        return True
    except OSError:
        return False
print("opened:", [p for p in writable if os.path.isfile(p) and opens(p, os.O_WRONLY)] + [p for p in readable if opens(p, os.O_RDONLY)])
"#;

#[tokio::test]
async fn machine_wide_files_cannot_be_opened() {
    for way in ways() {
        for mode in [SandboxMode::Workspace, SandboxMode::Strict] {
            let bench = by(way.clone(), mode);
            std::fs::write(bench.path("open.py"), OPEN_MACHINE_FILES).unwrap();
            let text = bench.ok("shell", json!({ "command": "python3 open.py" })).await;
            assert_eq!(text, "opened: []\n[exit status 0]", "{way:?} {mode:?}");
        }
    }
}

#[tokio::test]
async fn machine_wide_files_cannot_be_opened_from_worker() {
    for mode in [SandboxMode::Workspace, SandboxMode::Strict] {
        let shop = shop(usual(), mode);
        assert_eq!(shop.bench.scope.isolation, ToolIsolation::Process);
        std::fs::write(shop.bench.path("open.py"), OPEN_MACHINE_FILES).unwrap();
        let outcome = shop.call("shell", json!({ "command": "python3 open.py" })).await;
        assert_eq!(outcome.content, "opened: []\n[exit status 0]", "{mode:?}");
    }
}

#[tokio::test]
async fn required_proc_files_are_readable() {
    let bench = by(NamespaceMode::Own, SandboxMode::Workspace);
    let command = "grep -c MemTotal /proc/meminfo; grep -q processor /proc/cpuinfo && cat /proc/self/comm; \
                   echo out > /dev/stdout; cat /proc/sys/kernel/ostype; ls /proc/$$/fd > /dev/null && nproc > /dev/null && ps > /dev/null && echo ran";
    let text = bench.ok("shell", json!({ "command": command })).await;
    assert_eq!(text, "1\ncat\nout\nLinux\nran\n[exit status 0]");
}

const LISTEN: &str = r#"
import socket
def attempt(name, act):
    try:
        act()
        print(name, "listens")
    except OSError as error:
        print(name, "refused")
def bound():
    s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
def unbound():
    s = socket.socket(); s.listen()
def six():
    s = socket.socket(socket.AF_INET6); s.bind(("::1", 0)); s.listen()
attempt("bound", bound); attempt("unbound", unbound); attempt("six", six)
"#;

async fn listens(bench: &Bench) -> String {
    std::fs::write(bench.path("listen.py"), LISTEN).unwrap();
    bench.ok("shell", json!({ "command": "python3 listen.py" })).await
}

#[tokio::test]
async fn listening_requires_the_listen_permission() {
    for way in ways() {
        let mut bench = by(way, SandboxMode::Workspace);
        let text = listens(&bench).await;
        assert_eq!(text, "bound refused\nunbound refused\nsix refused\n[exit status 0]");
        bench.scope.sandbox.listen = true;
        let text = listens(&bench).await;
        assert!(text.starts_with("bound listens\nunbound listens\n"), "{text}");
        bench.scope.sandbox.mode = SandboxMode::Strict;
        let text = listens(&bench).await;
        assert!(!text.contains("listens"), "strict has no network: {text}");
    }
}

#[tokio::test]
async fn program_without_listen_permission_can_connect() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let bench = by(NamespaceMode::Own, SandboxMode::Workspace);
    let command = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port})); print(\"connected\")'"
    );
    assert!(bench.ok("shell", json!({ "command": command })).await.starts_with("connected"));
}
