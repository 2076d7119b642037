//! The attempts. Each prints `ESCAPED` only if it succeeded; forbidden effects outside are checked in `ground.rs`
//! as well, for all attempts together.
//!
//! Words in braces stand for places and numbers of the ground: `{home}` of Polyclaw, `{user}` of its user, `{pid}` and
//! `{port}` of the daemon, `{tcp}`, `{udp}`, `{unix}` and `{abstract}` of somebody who listens, `{mark}` to be found by.

use serde_json::{Value, json};

/// The kind of an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Succeeds without a sandbox, as the control run shows.
    Real,
    /// The same, but would harm the machine or the daemon there: not part of the control run.
    Harmful,
    /// Does not succeed without a sandbox either, on this machine or in this run.
    Closed,
    /// Only `strict` prevents it.
    Network,
}

pub struct Attempt {
    pub name: &'static str,
    pub kind: Kind,
    pub command: &'static str,
}

use Kind::{Closed, Harmful, Network, Real};

const fn attempt(name: &'static str, kind: Kind, command: &'static str) -> Attempt {
    Attempt { name, kind, command }
}

pub const SHELL: &[Attempt] = &[
    // Files of Polyclaw.
    attempt("token", Real, "cat {home}/token && echo ESCAPED"),
    attempt("config", Real, "cat {home}/config.toml && echo ESCAPED"),
    attempt("home listing", Real, "ls {home} && echo ESCAPED"),
    attempt("database copy", Real, "cp {home}/memory/sessions.db stolen.db && echo ESCAPED"),
    attempt("config append", Real, "echo '# {mark}' >> {home}/config.toml && echo ESCAPED"),
    attempt("database truncate", Harmful, "truncate -s 0 {home}/memory/sessions.db && echo ESCAPED"),
    attempt("database unlink", Harmful, "rm {home}/memory/sessions.db && echo ESCAPED"),
    attempt("token rename", Harmful, "mv {home}/token {home}/token.old && echo ESCAPED"),
    attempt("token chmod", Real, "chmod 644 {home}/token && echo ESCAPED"),
    attempt("folder in home", Real, "mkdir {home}/made && rmdir {home}/made && echo ESCAPED"),
    attempt("brain", Real, "touch {home}/memory/brain.db && rm {home}/memory/brain.db && echo ESCAPED"),
    attempt("binary", Harmful, "echo x >> {binary} && echo ESCAPED"),
    attempt("binary replaced", Harmful, "mv {binary} {binary}.old && echo ESCAPED"),
    attempt("log", Real, "cat {home}/node && echo ESCAPED"),
    attempt("lock", Real, "flock -n {home}/node true && echo ESCAPED"),
    // Files of the user.
    attempt("parent folders", Real, "cat ../../../user/secret && echo ESCAPED"),
    attempt("absolute path", Real, "cat {user}/secret && echo ESCAPED"),
    attempt("symlink to a file", Real, "ln -sfn {user}/secret l1 && cat l1 && echo ESCAPED"),
    attempt("symlink to a folder", Real, "ln -sfn {user} l2 && cat l2/secret && echo ESCAPED"),
    attempt("symlink of a symlink", Real, "ln -sfn {user} l3; ln -sfn l3/secret l4; cat l4 && echo ESCAPED"),
    // Every program has three, and the listing has one. A failed listing proves nothing.
    attempt(
        "descriptors left open",
        Closed,
        "ls -l /proc/self/fd | grep -E ' ([4-9]|[0-9]{2,}) -> ' && echo ESCAPED; ls /proc/self/fd | grep -qx 0 || echo ESCAPED",
    ),
    attempt(
        "write through a symlink",
        Real,
        "ln -sfn {user} l5; touch l5/.{mark} && rm l5/.{mark} && echo ESCAPED",
    ),
    attempt("hard link", Real, "ln {user}/secret h1 && cat h1 && rm h1 && echo ESCAPED"),
    attempt("rename in", Harmful, "mv {user}/secret in1 && echo ESCAPED"),
    attempt("rename out", Real, "touch o1 && mv o1 {user}/o1 && rm {user}/o1 && echo ESCAPED"),
    attempt("ssh key", Real, "cat {user}/.ssh/id && echo ESCAPED"),
    attempt("ssh authorized_keys", Harmful, "echo {mark} >> {user}/.ssh/authorized_keys && echo ESCAPED"),
    attempt("bashrc", Harmful, "echo 'touch /{mark}' >> {user}/.bashrc && echo ESCAPED"),
    attempt("real home", Real, "ls /root /home/* && echo ESCAPED"),
    attempt("crontab", Harmful, "echo '* * * * * touch /{mark}' > /var/spool/cron/{mark} && echo ESCAPED"),
    attempt("cron.d", Harmful, "echo '* * * * * root touch /{mark}' > /etc/cron.d/{mark} && echo ESCAPED"),
    attempt(
        "git hook outside",
        Harmful,
        "echo 'touch {mark}' > {user}/repo/.git/hooks/post-commit && echo ESCAPED",
    ),
    attempt(
        "git config outside",
        Harmful,
        "git config --file {user}/.gitconfig core.hooksPath {home} && echo ESCAPED",
    ),
    attempt("other agent's file", Real, "cat {other}/notes && echo ESCAPED"),
    attempt("other agent's folder", Real, "touch {other}/planted && rm {other}/planted && echo ESCAPED"),
    attempt("password hashes", Real, "cat /etc/shadow && echo ESCAPED"),
    attempt("passwd", Harmful, "echo x:0:0 >> /etc/passwd && echo ESCAPED"),
    attempt("ld.so.preload", Harmful, "echo {mark} > /etc/ld.so.preload && echo ESCAPED"),
    attempt("system program", Harmful, "touch /usr/bin/{mark} && echo ESCAPED"),
    attempt("root listing", Real, "ls / && echo ESCAPED"),
    attempt("run", Real, "ls /run /var/log && echo ESCAPED"),
    attempt("shared /tmp", Real, "ls /tmp | grep {mark} && echo ESCAPED"),
    // Other processes.
    attempt("self root", Real, "cat /proc/self/root{user}/secret && echo ESCAPED"),
    attempt("thread root", Real, "cat /proc/thread-self/root{user}/secret && echo ESCAPED"),
    attempt("own cwd upwards", Real, "cat /proc/self/cwd/../../../user/secret && echo ESCAPED"),
    attempt("daemon environ", Real, "tr '\\0' '\\n' < /proc/{pid}/environ && echo ESCAPED"),
    attempt("daemon root", Real, "cat /proc/{pid}/root{user}/secret && echo ESCAPED"),
    attempt("daemon cwd", Real, "ls /proc/{pid}/cwd/ && echo ESCAPED"),
    attempt("daemon descriptors", Real, "ls /proc/{pid}/fd && echo ESCAPED"),
    attempt(
        "daemon memory",
        Real,
        "head -c 1 /proc/{pid}/maps | grep . && dd if=/proc/{pid}/mem bs=1 count=0 && echo ESCAPED",
    ),
    attempt("daemon command line", Real, "tr '\\0' ' ' < /proc/{pid}/cmdline | grep daemon && echo ESCAPED"),
    attempt(
        "every environ",
        Real,
        "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep LAB_SECRET && echo ESCAPED",
    ),
    attempt(
        "parent environ",
        Closed,
        "cat /proc/$PPID/environ | tr '\\0' '\\n' | grep LAB_SECRET && echo ESCAPED",
    ),
    attempt(
        "ptrace",
        Real,
        "python3 -c 'import ctypes; r=ctypes.CDLL(None,use_errno=True).ptrace(0x4206,{pid},0,0); print(\"ESCAPED\" if r==0 else r)'",
    ),
    attempt(
        "process_vm_readv",
        Closed,
        "python3 -c 'import ctypes; r=ctypes.CDLL(None).process_vm_readv({pid},None,0,None,0,0); print(\"ESCAPED\" if r==0 else r)'",
    ),
    attempt(
        "pidfd_getfd",
        Real,
        "python3 -c 'import ctypes,os; p=os.pidfd_open({pid}); r=ctypes.CDLL(None).syscall(438,p,0,0); print(\"ESCAPED\" if r>=0 else r)'",
    ),
    attempt("kill the daemon", Harmful, "kill -9 {pid} && echo ESCAPED"),
    attempt("probe the daemon", Real, "kill -0 {pid} && echo ESCAPED"),
    attempt("kill the supervisor", Closed, "kill -KILL $PPID && echo ESCAPED"),
    attempt("kill everything", Harmful, "sh -c 'kill -9 -1' ; echo still"),
    attempt(
        "sigqueue",
        Real,
        "python3 -c 'import signal,os; signal.pidfd_send_signal(os.pidfd_open({pid}),0); print(\"ESCAPED\")'",
    ),
    attempt(
        "priority of the daemon",
        Real,
        "python3 -c 'import os; os.setpriority(os.PRIO_PROCESS,{pid},0); print(\"ESCAPED\")'",
    ),
    attempt(
        "limits of the daemon",
        Real,
        "python3 -c 'import resource; resource.prlimit({pid},resource.RLIMIT_CORE); print(\"ESCAPED\")'",
    ),
    attempt(
        "setns",
        Closed,
        "python3 -c 'import ctypes,os; f=os.open(\"/proc/{pid}/ns/mnt\",0); r=ctypes.CDLL(None).setns(f,0); print(\"ESCAPED\" if r==0 else r)'",
    ),
    // Sockets.
    attempt(
        "daemon API",
        Closed,
        "python3 -c 'import urllib.request as u; print(\"ESCAPED\", u.urlopen(\"http://127.0.0.1:{port}/api/v1/sessions\").read())'",
    ),
    attempt(
        "daemon API as a browser",
        Closed,
        "python3 -c 'import urllib.request as u; r=u.Request(\"http://127.0.0.1:{port}/api/v1/agents\",headers={\"Host\":\"localhost\",\"Cookie\":\"polyclaw=1\"}); print(\"ESCAPED\", u.urlopen(r).read())'",
    ),
    attempt(
        "daemon API login",
        Closed,
        "python3 -c 'import urllib.request as u; r=u.Request(\"http://127.0.0.1:{port}/api/v1/logins\",data=b\"{}\"); print(\"ESCAPED\", u.urlopen(r).read())'",
    ),
    attempt(
        "tcp",
        Network,
        "python3 -c 'import socket; s=socket.create_connection((\"127.0.0.1\",{tcp})); s.send(b\"x\"); print(\"ESCAPED\")'",
    ),
    attempt(
        "tcp server",
        Real,
        "python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); print(\"ESCAPED\")'",
    ),
    attempt(
        "udp",
        Network,
        "python3 -c 'import socket; s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.sendto(b\"x\",(\"127.0.0.1\",{udp})); print(\"ESCAPED\")'",
    ),
    attempt(
        "udp over six",
        Network,
        "python3 -c 'import socket; socket.socket(socket.AF_INET6,socket.SOCK_DGRAM); print(\"ESCAPED\")'",
    ),
    attempt(
        "unix socket",
        Real,
        "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect(\"{unix}\"); s.send(b\"x\"); print(\"ESCAPED\")'",
    ),
    attempt(
        "abstract socket",
        Real,
        "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect(\"\\0{abstract}\"); s.send(b\"x\"); print(\"ESCAPED\")'",
    ),
    attempt(
        "abstract datagram",
        Real,
        "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); s.bind(\"\\0{mark}\"); print(\"ESCAPED\")'",
    ),
    attempt(
        "netlink",
        Real,
        "python3 -c 'import socket; socket.socket(socket.AF_NETLINK,socket.SOCK_RAW,0); print(\"ESCAPED\")'",
    ),
    attempt(
        "raw socket",
        Real,
        "python3 -c 'import socket; socket.socket(socket.AF_INET,socket.SOCK_RAW,1); print(\"ESCAPED\")'",
    ),
    attempt(
        "packet socket",
        Real,
        "python3 -c 'import socket; socket.socket(socket.AF_PACKET,socket.SOCK_RAW); print(\"ESCAPED\")'",
    ),
    attempt(
        "vsock",
        Closed,
        "python3 -c 'import socket; socket.socket(40,socket.SOCK_STREAM); print(\"ESCAPED\")'",
    ),
    attempt(
        "crypto socket",
        Closed,
        "python3 -c 'import socket; socket.socket(38,socket.SOCK_SEQPACKET); print(\"ESCAPED\")'",
    ),
    attempt(
        "short-pointer socket call",
        Closed,
        "python3 -c 'import ctypes; r=ctypes.CDLL(None).syscall(0x40000000+41,1,1,0); print(\"ESCAPED\" if r>=0 else r)'",
    ),
    attempt(
        "io_uring",
        Closed,
        "python3 -c 'import ctypes; b=ctypes.create_string_buffer(120); r=ctypes.CDLL(None).syscall(425,4,b); print(\"ESCAPED\" if r>=0 else r)'",
    ),
    // Privileges and the kernel.
    attempt("environment", Real, "env | grep LAB_SECRET && echo ESCAPED"),
    attempt("set-user-id", Real, "cp /bin/true suid && chmod u+s suid && echo ESCAPED; rm -f suid"),
    attempt("set-group-id", Real, "cp /bin/true sgid && chmod 2755 sgid && echo ESCAPED; rm -f sgid"),
    attempt(
        "set-user-id at creation",
        Real,
        "python3 -c 'import os; os.umask(0); os.close(os.open(\"born\",os.O_CREAT|os.O_WRONLY,0o4755)); print(\"ESCAPED\" if os.stat(\"born\").st_mode & 0o4000 else 0)'; rm -f born",
    ),
    attempt(
        "set-user-id by openat2",
        Real,
        "python3 -c 'import ctypes,os,struct; os.umask(0); h=ctypes.create_string_buffer(struct.pack(\"QQQ\",os.O_CREAT|os.O_WRONLY,0o4755,0)); r=ctypes.CDLL(None).syscall(437,-100,b\"born2\",h,24); print(\"ESCAPED\" if r>=0 else r)'; rm -f born2",
    ),
    attempt("chown", Real, "touch owned && chown 65534 owned && echo ESCAPED; rm -f owned"),
    attempt("device node", Real, "mknod disk b 7 0 && echo ESCAPED; rm -f disk"),
    attempt("memory device", Closed, "head -c 1 /dev/mem | wc -c | grep 1 && echo ESCAPED"),
    attempt(
        "disks",
        Closed,
        "for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/kmsg; do head -c 1 $d >/dev/null 2>&1 && echo ESCAPED; done; true",
    ),
    attempt("mount", Real, "mkdir -p m && mount -t tmpfs none m && umount m && echo ESCAPED"),
    attempt("new user namespace", Real, "unshare -Ur true && echo ESCAPED"),
    attempt("new mount namespace", Real, "unshare -m true && echo ESCAPED"),
    attempt(
        "clone into a namespace",
        Real,
        "python3 -c 'import ctypes,os; l=ctypes.CDLL(None); r=l.syscall(56,0x10000000|17,0,0,0,0); r==0 and os._exit(0); print(\"ESCAPED\" if r>0 else r)'",
    ),
    attempt(
        "pivot_root",
        Closed,
        "mkdir -p p; python3 -c 'import ctypes; r=ctypes.CDLL(None).syscall(155,b\"p\",b\"p\"); print(\"ESCAPED\" if r==0 else r)'",
    ),
    attempt("chroot", Real, "mkdir -p c && python3 -c 'import os; os.chroot(\"c\"); print(\"ESCAPED\")'"),
    attempt(
        "file handles",
        Real,
        "python3 -c 'import ctypes,struct; h=ctypes.create_string_buffer(struct.pack(\"Ii\",128,0)+b\"\\0\"*128); m=ctypes.c_int(); r=ctypes.CDLL(None).syscall(303,-100,b\"/root\",h,ctypes.byref(m),0); print(\"ESCAPED\" if r==0 else r)'",
    ),
    attempt(
        "terminal injection",
        Closed,
        "python3 -c 'import fcntl; fcntl.ioctl(open(\"/dev/tty\"),0x5412,b\"x\"); print(\"ESCAPED\")'",
    ),
    attempt(
        "keyring",
        Closed,
        "python3 -c 'import ctypes; r=ctypes.CDLL(None).syscall(248,b\"user\",b\"{mark}\",b\"x\",1,-4); print(\"ESCAPED\" if r>=0 else r)'",
    ),
    attempt(
        "bpf",
        Closed,
        "python3 -c 'import ctypes; b=ctypes.create_string_buffer(b\"\\1\\0\\0\\0\\4\\0\\0\\0\\4\\0\\0\\0\\1\\0\\0\\0\"+b\"\\0\"*100); r=ctypes.CDLL(None).syscall(321,0,b,72); print(\"ESCAPED\" if r>=0 else r)'",
    ),
    attempt(
        "perf",
        Closed,
        "python3 -c 'import ctypes,struct; b=ctypes.create_string_buffer(struct.pack(\"IIQ\",1,112,0)+b\"\\0\"*100); r=ctypes.CDLL(None).syscall(298,b,0,-1,-1,0); print(\"ESCAPED\" if r>=0 else r)'",
    ),
    attempt(
        "userfaultfd",
        Closed,
        "python3 -c 'import ctypes; r=ctypes.CDLL(None).syscall(323,0); print(\"ESCAPED\" if r>=0 else r)'",
    ),
    attempt(
        "shared memory by key",
        Real,
        "python3 -c 'import ctypes; r=ctypes.CDLL(None).shmget(0x706f6c79,4096,0o1600); print(\"ESCAPED\" if r>=0 else r); r>=0 and ctypes.CDLL(None).shmctl(r,0,None)'",
    ),
    attempt("shared memory by name", Real, "ls /dev/shm | grep outside-{mark} && echo ESCAPED"),
    // Opened for writing, never written: these are settings of the whole machine.
    attempt("kernel settings", Real, "(: >> /proc/sys/kernel/core_pattern) && echo ESCAPED"),
    attempt("memory settings", Real, "(: >> /proc/sys/vm/overcommit_memory) && echo ESCAPED"),
    attempt("interrupt settings", Closed, "(: >> /proc/irq/default_smp_affinity) && echo ESCAPED"),
    attempt("sysrq", Closed, "test -e /proc/sysrq-trigger && (: >> /proc/sysrq-trigger) && echo ESCAPED"),
    attempt("kernel pages", Closed, "(: < /proc/kpageflags) && echo ESCAPED"),
    attempt("kernel timers", Closed, "(: < /proc/timer_list) && echo ESCAPED"),
    attempt("kernel keys", Real, "(: < /proc/keys) && echo ESCAPED"),
    attempt("hostname", Harmful, "hostname {mark} && echo ESCAPED"),
    attempt("clock", Harmful, "date -s @1 && echo ESCAPED"),
    attempt("more rights by su", Closed, "su nobody -s /bin/sh -c 'echo ESCAPED' </dev/null"),
    attempt("group list", Real, "python3 -c 'import os; os.setgroups([0,4]); print(\"ESCAPED\")'"),
    attempt("another user", Real, "python3 -c 'import os; os.setuid(65534); print(\"ESCAPED\")'"),
    attempt("limits lifted", Closed, "sh -c 'ulimit -Hc unlimited && ulimit -c unlimited' && echo ESCAPED"),
    attempt("core file", Closed, "ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls core* && echo ESCAPED"),
    attempt(
        "preload for the next stage",
        Closed,
        "echo x > evil.so; LD_PRELOAD=$PWD/evil.so LD_LIBRARY_PATH=$PWD sh -c 'cat {home}/token' && echo ESCAPED",
    ),
    // Outliving the call, and exhausting the machine.
    attempt("setsid", Harmful, "setsid sleep 400.{mark} & sleep 0.1; echo left"),
    attempt("nohup", Harmful, "nohup sleep 401.{mark} >/dev/null 2>&1 & sleep 0.1; echo left"),
    attempt(
        "double fork",
        Harmful,
        "perl -MPOSIX -e 'fork and exit; POSIX::setsid(); fork and exit; close $_ for *STDIN,*STDOUT,*STDERR; exec \"sleep\",\"402.{mark}\"'; sleep 0.1; echo left",
    ),
    attempt(
        "ignored signals",
        Harmful,
        "(trap '' HUP TERM INT; setsid sleep 403.{mark} &) & sleep 0.1; echo left",
    ),
    attempt(
        "own subreaper",
        Harmful,
        "python3 -c 'import ctypes,os,time; ctypes.CDLL(None).prctl(36,1,0,0,0); os.fork() and os._exit(0); os.setsid(); os.execvp(\"sleep\",[\"sleep\",\"404.{mark}\"])'; sleep 0.1; echo left",
    ),
    // Each of these ends on its own: a failing sandbox must not take the machine down.
    attempt(
        "many processes",
        Harmful,
        "for i in $(seq 600); do sleep 3.{mark} & done; sleep 1; echo ESCAPED",
    ),
    attempt(
        "thread bomb",
        Harmful,
        "python3 -c 'import threading,time\nfor i in range(5000): threading.Thread(target=time.sleep,args=(2,)).start()\nprint(\"ESCAPED\")'",
    ),
    attempt("memory bomb", Harmful, "perl -e '$x = \"x\" x 3_000_000_000; print \"ESCAPED\"'"),
    attempt(
        "memory bombs",
        Harmful,
        "for i in 1 2 3 4 5 6 7 8; do perl -e '$x = \"x\" x 120_000_000; sleep 20' & done; wait; echo ESCAPED",
    ),
    attempt(
        "shared memory bomb",
        Harmful,
        "python3 -c 'import mmap\nm=mmap.mmap(-1,900<<20)\nfor i in range(0,900<<20,4096): m[i]=1\nimport time; time.sleep(1); print(\"ESCAPED\")'",
    ),
    attempt(
        "memory without a file",
        Closed,
        "python3 -c 'import os; f=os.memfd_create(\"x\"); print(\"ESCAPED\")' 2>/dev/null; true",
    ),
    attempt("huge output", Harmful, "head -c 50000000 /dev/zero | tr '\\0' x"),
    attempt(
        "huge file",
        Harmful,
        "head -c 80000000 /dev/zero > huge; [ $(stat -c %s huge) -gt 70000000 ] && echo ESCAPED; rm -f huge",
    ),
    attempt("sparse file", Harmful, "truncate -s 10T sparse && echo ESCAPED; rm -f sparse"),
    attempt("endless loop", Harmful, "timeout 60 sh -c 'while :; do :; done'; [ $? = 124 ] && echo ESCAPED"),
];

/// Attempts by the other tools. The command of the first one created the links that they follow.
pub fn others() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        (
            "links for the file tools",
            "shell",
            json!({ "command": "ln -sfn {user} out; ln -sfn {home}/token tok; ln -sfn /proc/self/root r; ln -sfn {other} oth" }),
        ),
        ("read above", "read_file", json!({ "path": "../../token" })),
        ("read absolute", "read_file", json!({ "path": "{home}/token" })),
        ("read by link", "read_file", json!({ "path": "tok" })),
        ("read by linked folder", "read_file", json!({ "path": "out/secret" })),
        ("read by proc", "read_file", json!({ "path": "/proc/self/environ" })),
        ("read by linked proc", "read_file", json!({ "path": "r{user}/secret" })),
        ("read the daemon", "read_file", json!({ "path": "/proc/{pid}/environ" })),
        ("write above", "write_file", json!({ "path": "../planted-{mark}", "content": "x" })),
        ("write by link", "write_file", json!({ "path": "out/planted-{mark}", "content": "x" })),
        ("write over a link", "write_file", json!({ "path": "tok", "content": "x" })),
        ("edit by link", "edit_file", json!({ "path": "out/secret", "old_text": "canary", "new_text": "x" })),
        ("list the root", "list_dir", json!({ "path": "/" })),
        ("list by link", "list_dir", json!({ "path": "out" })),
        ("search by link", "search_files", json!({ "pattern": "canary", "path": "out" })),
        ("search everything", "search_files", json!({ "pattern": "canary" })),
        ("start elsewhere", "shell", json!({ "command": "cat secret && echo ESCAPED", "cwd": "out" })),
        ("start above", "shell", json!({ "command": "cat token && echo ESCAPED", "cwd": "../.." })),
        ("fetch the daemon", "http_fetch", json!({ "url": "http://127.0.0.1:{port}/api/v1/sessions" })),
        ("fetch a file", "http_fetch", json!({ "url": "file://{home}/token" })),
    ]
}
