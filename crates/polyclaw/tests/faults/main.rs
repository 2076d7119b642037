//! The real daemon under faults of the machine and of its neighbours: it stays alive, refuses with a stable code
//! what it can not keep, loses and doubles nothing, and goes on by itself when the fault is over.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod daemon;
mod descriptors;
mod disk;
mod files;
mod fork;
mod fuzz;
mod postgres;
mod provider;
mod readers;
