//! What tests and benchmarks need around the real thing. Never a dependency of the product.

pub mod model_server;
pub mod postgres;
