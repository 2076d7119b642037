//! Test infrastructure around the real engine, for tests, benchmarks and `polyclaw selftest`. Not used in production.

pub mod chaos;
pub mod collector;
pub mod fuzz;
pub mod model_server;
pub mod platform;
mod port;
mod ports;
pub mod postgres;
pub mod simulator;
mod wait_until;
pub mod world;

/// A small image.
pub const PIXEL: &[u8] = include_bytes!("pixel.png");

pub use port::free_port;
pub use ports::fake_channel::{FakeChannel, inbound_dm, inbound_group, with_file};
pub use ports::script::{ModelScript, ScriptStep, ScriptedProvider, last_user_text};
pub use ports::{FakeBriefings, FiredKillPoint, KillPointFaults, RecordingToolbox, SequentialIds, SimClock};
pub use wait_until::wait_until;
