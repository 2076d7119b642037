//! The API of the control plane, which manages many instances.

pub mod audit;
pub mod configs;
pub mod health;
pub mod imports;
pub mod instances;
pub mod logs;
pub mod messages;
pub mod observe;
pub mod pending;
pub mod rules;
pub mod sockets;
pub mod tokens;
