//! The real daemon under faults of the machine and of other services: it stays alive, rejects with a stable code
//! what it cannot store, loses and duplicates nothing, and recovers when the fault is over.

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
