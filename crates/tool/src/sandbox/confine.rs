//! The last stage: confines itself, looks at what holds, says so, and becomes the program.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use polyclaw_domain::agent::SandboxMode;
use polyclaw_domain::sandbox::{LandlockFacts, ProgramConfinement};
use rustix::process::Signal;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::facts::{self, Before};
use super::plan::{self, Inherited, Line, MISUSED, Plan, Profile, REFUSED, Way};
use super::supervise::{handed_on, memory_settings, refuse};
use super::{calls, files, limits, watch};

pub fn enter() -> u8 {
    let Some(plan) = handed_on() else { return MISUSED };
    match confine(&plan) {
        Ok(program) => plan::say(&Line::Facts(Box::new(program))),
        Err(why) => return refuse(&why),
    }
    let error = become_program(&plan);
    plan::say(&Line::Refused(format!("{} can not be run: {error}", plan.program[0])));
    REFUSED
}

fn confine(plan: &Plan) -> Result<ProgramConfinement, String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok();
    // Out of any terminal, and a group of its own.
    rustix::process::setsid().ok();
    std::env::set_current_dir(&plan.folder)
        .map_err(|error| format!("its folder can not be entered: {error}"))?;
    let before = Before::look(&plan.namespaces)?;
    let others = watch::tasks_of(rustix::process::getuid().as_raw());
    let landlock = if plan.mode == SandboxMode::Off { None } else { Some(close(plan, &before)?) };
    // In a user namespace of its own a program's processes are counted apart; else with all of its user's.
    let others = if before.has_own("user") { 0 } else { others };
    limits::set(&plan.limits, others)?;
    let program = before.read_back(plan, landlock)?;
    facts::judge(plan, &program)?;
    Ok(program)
}

fn close(plan: &Plan, before: &Before) -> Result<LandlockFacts, String> {
    drop_capabilities()?;
    rustix::thread::set_no_new_privs(true).map_err(|error| format!("no_new_privs: {error}"))?;
    let landlock = files::close(plan)?;
    // Signals: landlock scopes them since ABI 6; else processes outside must not be there at all.
    if landlock.abi < 6 && !before.has_own("pid") {
        return Err("this kernel can neither keep signals inside nor give a process namespace".to_owned());
    }
    calls::filter(plan)?;
    Ok(landlock)
}

/// All of them, and for ever: root without capabilities is a user like others.
fn drop_capabilities() -> Result<(), String> {
    let failed = |error: rustix::io::Errno| format!("capabilities can not be given up: {error}");
    rustix::thread::clear_ambient_capability_set().ok();
    for bit in CapabilitySet::all().iter() {
        // Needs a capability itself; who has none has nothing to lose either.
        rustix::thread::remove_capability_from_bounding_set(bit).ok();
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets).map_err(failed)
}

fn become_program(plan: &Plan) -> io::Error {
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
    if plan.profile == Profile::Worker {
        let inherited = serde_json::to_string(&plan.inherited()).unwrap_or_default();
        command.envs(memory_settings()).env(Inherited::VARIABLE, inherited);
    }
    command.exec()
}

/// A command gets no input, and above all not the socket. A worker and a server talk over it.
fn hand_over_streams(profile: Profile) -> io::Result<()> {
    match profile {
        Profile::Command => Ok(rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?.as_fd())?),
        Profile::Worker | Profile::Server => Ok(rustix::stdio::dup2_stdout(io::stdin().as_fd())?),
    }
}

impl Way {
    pub fn is_bubblewrap(&self) -> bool {
        matches!(self, Self::Bubblewrap(_))
    }
}
