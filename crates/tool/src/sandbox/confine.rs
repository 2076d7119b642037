//! The last stage: confines itself, verifies the result, reports it and execs the program.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::sandbox::{LandlockFacts, ProgramConfinement};
use rustix::process::Signal;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::facts::{self, PreConfinement};
use super::plan::{
    self, EXIT_MISUSED, EXIT_REFUSED, HelperMessage, InheritedSandbox, NamespaceMode, SandboxPlan,
    SandboxProfile,
};
use super::supervise::{allocator_settings, receive_plan, report_refusal};
use super::{landlock, limits, seccomp, watch};

pub fn enter() -> u8 {
    let Some(plan) = receive_plan() else { return EXIT_MISUSED };
    match confine_process(&plan) {
        Ok(program) => plan::send_line(&HelperMessage::Facts(Box::new(program))),
        Err(why) => return report_refusal(&why),
    }
    let error = exec_program(&plan);
    plan::send_line(&HelperMessage::Refused(format!("cannot run {}: {error}", plan.program[0])));
    EXIT_REFUSED
}

fn confine_process(plan: &SandboxPlan) -> Result<ProgramConfinement, String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok();
    // Detach from any terminal, in a process group of its own.
    rustix::process::setsid().ok();
    std::env::set_current_dir(&plan.folder).map_err(|error| format!("cannot enter its folder: {error}"))?;
    let before = PreConfinement::capture_state(&plan.namespaces)?;
    let others = watch::count_user_tasks(rustix::process::getuid().as_raw());
    let landlock = if plan.mode == SandboxMode::Off { None } else { Some(restrict_process(plan, &before)?) };
    // In its own user namespace only the program's processes count for the limit, otherwise all of the user's.
    let others = if before.has_own_namespace("user") { 0 } else { others };
    limits::apply_limits(&plan.limits, others)?;
    let program = before.collect_facts(plan, landlock)?;
    facts::verify_confinement(plan, &program)?;
    Ok(program)
}

fn restrict_process(plan: &SandboxPlan, before: &PreConfinement) -> Result<LandlockFacts, String> {
    drop_capabilities()?;
    rustix::thread::set_no_new_privs(true).map_err(|error| format!("no_new_privs: {error}"))?;
    let landlock = landlock::apply_landlock(plan)?;
    // Landlock scopes signals since ABI 6. Without it, outside processes must be invisible.
    if landlock.abi < 6 && !before.has_own_namespace("pid") {
        return Err("this kernel supports neither signal scoping nor a process namespace".to_owned());
    }
    seccomp::apply_filters(plan)?;
    Ok(landlock)
}

/// Drops all capabilities for good, so that root is an ordinary user.
fn drop_capabilities() -> Result<(), String> {
    let failed = |error: rustix::io::Errno| format!("cannot drop capabilities: {error}");
    rustix::thread::clear_ambient_capability_set().ok();
    for bit in CapabilitySet::all().iter() {
        // Needs a capability itself; without it there is nothing to drop.
        rustix::thread::remove_capability_from_bounding_set(bit).ok();
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).map_err(failed)
}

fn exec_program(plan: &SandboxPlan) -> io::Error {
    if let Err(error) = hand_over_streams(plan.profile) {
        return error;
    }
    let mut command = Command::new(&plan.program[0]);
    command.args(&plan.program[1..]).env_clear();
    if plan.mode != SandboxMode::Off {
        let temporary = if plan.own_temporary { "/tmp".as_ref() } else { plan.temporary.as_path() };
        command.env("HOME", &plan.workspace).env("TMPDIR", temporary);
    }
    command.envs(plan.environment.iter().map(|(k, v)| (k, v)));
    if plan.profile == SandboxProfile::Worker {
        let inherited = serde_json::to_string(&plan.to_inherited()).unwrap_or_default();
        command.envs(allocator_settings()).env(InheritedSandbox::SANDBOX_VARIABLE, inherited);
    }
    command.exec()
}

/// Sets up the streams. A command gets no input and never the socket. Workers and servers use the socket.
fn hand_over_streams(profile: SandboxProfile) -> io::Result<()> {
    match profile {
        SandboxProfile::Command => Ok(rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?.as_fd())?),
        SandboxProfile::Worker | SandboxProfile::Server => {
            Ok(rustix::stdio::dup2_stdout(io::stdin().as_fd())?)
        }
    }
}

impl NamespaceMode {
    pub fn is_bubblewrap(&self) -> bool {
        matches!(self, Self::Bubblewrap(_))
    }
}
