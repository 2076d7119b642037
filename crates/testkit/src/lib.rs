//! What tests, benchmarks and `polyclaw selftest` need around the real engine. Nothing here is on the path of a
//! real message.

pub mod chaos;
pub mod collector;
pub mod fuzz;
pub mod model_server;
pub mod platform;
mod port;
mod ports;
pub mod postgres;
pub mod simulator;
mod until;
pub mod world;

/// A small image.
pub const PIXEL: &[u8] = include_bytes!("pixel.png");

pub use port::free_port;
pub use ports::outlet::{Outlet, group_letter, letter, with_file};
pub use ports::script::{Line, Script, Scripted, last_user};
pub use ports::{Faulty, Fired, Papers, Seeded, SimClock, Tools};
pub use until::until;
