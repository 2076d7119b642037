//! Kernel limits per process: sets them and reads them back.

use polyclaw_domain::sandbox::ProgramLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const MIB: u64 = 1024 * 1024;

/// `others`: processes that count towards the limit and do not belong to this program.
pub fn apply_limits(limits: &ProgramLimits, others: u64) -> Result<(), String> {
    let processes = limits.processes.map(|most| most + others);
    let wanted = [
        ("memory", Resource::Data, limits.memory_mb.map(|size| size * MIB)),
        ("cpu", Resource::Cpu, limits.cpu_seconds),
        ("processes", Resource::Nproc, processes),
        ("file size", Resource::Fsize, limits.file_mb.map(|size| size * MIB)),
        ("open files", Resource::Nofile, limits.open_files),
        ("core", Resource::Core, limits.core_bytes),
    ];
    for (name, resource, value) in wanted {
        let Some(value) = value else { continue };
        // Never above the current maximum, so that a worker's programs stay below the worker's limits.
        let most = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit).map_err(|error| format!("cannot set the limit of {name}: {error}"))?;
    }
    Ok(())
}

pub fn read_limits() -> ProgramLimits {
    let now = |resource| getrlimit(resource).current;
    ProgramLimits {
        memory_mb: now(Resource::Data).map(|bytes| bytes / MIB),
        cpu_seconds: now(Resource::Cpu),
        processes: now(Resource::Nproc),
        file_mb: now(Resource::Fsize).map(|bytes| bytes / MIB),
        open_files: now(Resource::Nofile),
        core_bytes: now(Resource::Core),
    }
}
