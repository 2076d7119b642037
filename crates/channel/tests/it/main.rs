//! The channels against platforms on the wire: real HTTP over loopback.
#![allow(clippy::unwrap_used, reason = "the lint's own exception for tests does not reach fixtures")]

mod buttons;
mod chunks;
mod discord;
mod emulator;
mod fixture;
mod matrix;
mod slack;
mod split;
mod telegram;
mod webhook;
mod whatsapp;
