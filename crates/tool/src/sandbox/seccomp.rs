//! Seccomp filters: blocks system calls that no tool needs and that lead out of a sandbox or around its limits. They
//! fail with a permission error, so that programs can continue.

use std::collections::BTreeMap;

use polyclaw_domain::agent::SandboxMode;
use seccompiler::{
    BpfProgram, SeccompAction,
    SeccompCmpArgLen::{Dword, Qword},
    SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::plan::{SandboxPlan, SandboxProfile};

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;
type SeccompResult<T> = Result<T, seccompiler::Error>;

/// Forbidden with any arguments.
const FORBIDDEN_SYSCALLS: &[i64] = &[
    // Access to other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Ways around a filter of system calls.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Keys, and memory shared by name.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    // Machine-wide settings.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_fanotify_init,
];

#[cfg(target_arch = "x86_64")]
const OF_X86: &[i64] = &[libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const OF_X86: &[i64] = &[];

/// Fail with ENOSYS, so that programs fall back to calls whose arguments a filter can inspect.
const ENOSYS_SYSCALLS: &[i64] = &[libc::SYS_clone3, libc::SYS_memfd_create, libc::SYS_memfd_secret];
const COMMAND_ENOSYS_SYSCALLS: &[i64] = &[libc::SYS_openat2];

const NAMESPACE_FLAGS: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// An obsolete socket type; libc deprecates its name.
const SOCK_PACKET: i32 = 10;
const PR_SET_DUMPABLE: u64 = 4;
const IOPRIO_WHO_PROCESS: u32 = 1;
/// Newer than the libc crate. The numbers are the same on all architectures.
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;
/// Set-user-id and set-group-id.
const SETID_MODE_BITS: [u32; 2] = [0o4000, 0o2000];

/// Applies the filters to this process and everything it starts.
pub fn apply_filters(plan: &SandboxPlan) -> Result<(), String> {
    let unknown = enosys_filter(plan.profile).map_err(|error| format!("seccomp: {error}"))?;
    let forbidden = forbidden_filter(plan).map_err(|error| format!("seccomp: {error}"))?;
    let apply = |program: &BpfProgram| {
        seccompiler::apply_filter(program).map_err(|error| format!("seccomp: {error}"))
    };
    apply(&unknown)?;
    apply(&forbidden)
}

fn enosys_filter(profile: SandboxProfile) -> SeccompResult<BpfProgram> {
    let more = if profile == SandboxProfile::Worker { &[] } else { COMMAND_ENOSYS_SYSCALLS };
    compile_filter(ENOSYS_SYSCALLS.iter().chain(more).map(|call| (*call, Vec::new())).collect(), libc::ENOSYS)
}

fn forbidden_filter(plan: &SandboxPlan) -> SeccompResult<BpfProgram> {
    let mut rules: SeccompRules =
        FORBIDDEN_SYSCALLS.iter().chain(OF_X86).map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, socket_rules(plan.mode)?);
    if !plan.listen {
        // Landlock restricts only `bind`, and `listen` on an unbound socket assigns a port.
        rules.insert(libc::SYS_listen, Vec::new());
    }
    rules.insert(
        libc::SYS_clone,
        any_of(NAMESPACE_FLAGS.iter().map(|flag| has_bits(0, flag.unsigned_abs())))?,
    );
    rules.insert(libc::SYS_ioctl, any_of([libc::TIOCSTI, libc::TIOCLINUX].map(|code| equals(1, code)))?);
    for (call, mode) in [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2)] {
        rules.insert(call, any_of(SETID_MODE_BITS.map(|bit| has_bits(mode, bit)))?);
    }
    // A process may change only itself. These calls can change others of the same user, which neither landlock nor
    // capabilities prevent.
    rules.insert(libc::SYS_prlimit64, any_of([dword_condition(0, SeccompCmpOp::Ne, 0)])?);
    // 0 also stands for the own process group or user, which include other processes.
    rules.insert(libc::SYS_setpriority, any_of([0, 1].map(|at| dword_condition(at, SeccompCmpOp::Ne, 0)))?);
    let other_priorities = [(0, IOPRIO_WHO_PROCESS), (1, 0)];
    let other_priorities = other_priorities.map(|(at, own)| dword_condition(at, SeccompCmpOp::Ne, own));
    rules.insert(libc::SYS_ioprio_set, any_of(other_priorities)?);
    // A process that hides its memory and files from others hides them from the supervisor as well.
    rules.insert(libc::SYS_prctl, vec![SeccompRule::new(vec![equals(0, PR_SET_DUMPABLE)?, equals(1, 0)?])?]);
    rules.insert(libc::SYS_mknodat, special_file_rules(2)?);
    rules.insert(libc::SYS_openat, setid_create_rules(2)?);
    #[cfg(target_arch = "x86_64")]
    {
        rules.insert(libc::SYS_chmod, any_of(SETID_MODE_BITS.map(|bit| has_bits(1, bit)))?);
        rules.insert(libc::SYS_creat, any_of(SETID_MODE_BITS.map(|bit| has_bits(1, bit)))?);
        rules.insert(libc::SYS_mknod, special_file_rules(1)?);
        rules.insert(libc::SYS_open, setid_create_rules(1)?);
    }
    if !plan.sealed {
        forbid_attribute_changes(&mut rules)?;
    }
    #[cfg(target_arch = "x86_64")]
    add_x32_numbers(&mut rules);
    compile_filter(rules, libc::EPERM)
}

/// Forbids changes of modes, owners, times and similar attributes by path, which landlock does not restrict. Needed if
/// mounts are not read-only. Changes through an open file stay possible, because landlock has checked the open.
fn forbid_attribute_changes(rules: &mut SeccompRules) -> SeccompResult<()> {
    let by_path = [
        libc::SYS_fchmodat,
        libc::SYS_fchmodat2,
        libc::SYS_fchownat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        SYS_SETXATTRAT,
        SYS_REMOVEXATTRAT,
        SYS_FILE_SETATTR,
    ];
    rules.extend(by_path.map(|call| (call, Vec::new())));
    let has_path = SeccompCondition::new(1, Qword, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_utimensat, vec![SeccompRule::new(vec![has_path])?]);
    #[cfg(target_arch = "x86_64")]
    rules.extend(
        [
            libc::SYS_chmod,
            libc::SYS_chown,
            libc::SYS_lchown,
            libc::SYS_utime,
            libc::SYS_utimes,
            libc::SYS_futimesat,
        ]
        .map(|call| (call, Vec::new())),
    );
    Ok(())
}

/// No sockets at all in strict mode, else only IPv4 and IPv6 without raw packets.
fn socket_rules(mode: SandboxMode) -> SeccompResult<Vec<SeccompRule>> {
    if mode == SandboxMode::Strict {
        return Ok(Vec::new());
    }
    let is_not = |socket_domain: i32| dword_condition(0, SeccompCmpOp::Ne, socket_domain.unsigned_abs());
    let kind = |kind: i32| dword_condition(1, SeccompCmpOp::MaskedEq(0xf), kind.unsigned_abs());
    Ok(vec![
        SeccompRule::new(vec![is_not(libc::AF_INET)?, is_not(libc::AF_INET6)?])?,
        SeccompRule::new(vec![kind(libc::SOCK_RAW)?])?,
        SeccompRule::new(vec![kind(SOCK_PACKET)?])?,
    ])
}

fn special_file_rules(mode: u8) -> SeccompResult<Vec<SeccompRule>> {
    let kind = |kind: u32| dword_condition(mode, SeccompCmpOp::MaskedEq(libc::S_IFMT.into()), kind);
    let rules = [libc::S_IFBLK, libc::S_IFCHR].map(kind);
    any_of(rules.into_iter().chain(SETID_MODE_BITS.map(|bit| has_bits(mode, bit))))
}

/// Creating a file with a set-id mode. Without these flags the kernel ignores the mode argument, which may hold
/// anything.
fn setid_create_rules(flags: u8) -> SeccompResult<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for flag in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
        for bit in SETID_MODE_BITS {
            rules.push(SeccompRule::new(vec![
                has_bits(flags, flag.unsigned_abs())?,
                has_bits(flags + 1, bit)?,
            ])?);
        }
    }
    Ok(rules)
}

/// Adds the x32 numbers of the same calls. Some calls have a separate x32 number in addition.
#[cfg(target_arch = "x86_64")]
fn add_x32_numbers(rules: &mut SeccompRules) {
    const X32_SYSCALL_BIT: i64 = 0x4000_0000;
    const X32_RENUMBERED: [(i64, i64); 5] = [
        (libc::SYS_ioctl, 514),
        (libc::SYS_ptrace, 521),
        (libc::SYS_kexec_load, 528),
        (libc::SYS_process_vm_readv, 539),
        (libc::SYS_process_vm_writev, 540),
    ];
    let mut more: SeccompRules =
        rules.iter().map(|(call, rules)| (call | X32_SYSCALL_BIT, rules.clone())).collect();
    more.extend(
        X32_RENUMBERED
            .map(|(call, number)| (number | X32_SYSCALL_BIT, rules.get(&call).cloned().unwrap_or_default())),
    );
    rules.append(&mut more);
}

fn any_of(
    conditions: impl IntoIterator<Item = SeccompResult<SeccompCondition>>,
) -> SeccompResult<Vec<SeccompRule>> {
    conditions.into_iter().map(|condition| Ok(SeccompRule::new(vec![condition?])?)).collect()
}

fn has_bits(argument: u8, bits: u32) -> SeccompResult<SeccompCondition> {
    dword_condition(argument, SeccompCmpOp::MaskedEq(bits.into()), bits)
}

fn equals(argument: u8, value: u64) -> SeccompResult<SeccompCondition> {
    Ok(SeccompCondition::new(argument, Dword, SeccompCmpOp::Eq, value)?)
}

/// Compares only the lower 32 bits: the kernel ignores the rest of these arguments.
fn dword_condition(argument: u8, operator: SeccompCmpOp, value: u32) -> SeccompResult<SeccompCondition> {
    Ok(SeccompCondition::new(argument, Dword, operator, value.into())?)
}

fn compile_filter(rules: SeccompRules, error: i32) -> SeccompResult<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()?)
}
