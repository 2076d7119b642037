//! The real binary, a home of its own, and a scripted model.

#![allow(clippy::unwrap_used, reason = "the lint's own exception for tests does not reach fixtures")]

mod a2a;
mod acp;
mod answering;
mod briefing;
mod budgets;
mod canary;
mod claims;
mod crash;
mod damage;
mod delegation;
mod escape;
mod first_run;
mod fixture;
mod hardening;
mod help;
mod hooks;
mod injection;
mod mcp;
mod mcp_confined;
mod mcp_serve;
mod model;
mod nouns;
mod recall;
mod refusals;
mod secrets;
mod telemetry;
mod verbs;
