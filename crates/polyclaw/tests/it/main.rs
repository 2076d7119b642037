//! The real binary, a home of its own, and a scripted model.

#![allow(clippy::unwrap_used, reason = "the lint's own exception for tests does not reach fixtures")]

mod answering;
mod crash;
mod escape;
mod first_run;
mod fixture;
mod help;
mod model;
mod nouns;
mod refusals;
