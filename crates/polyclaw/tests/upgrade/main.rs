//! Homes and databases of an earlier version open with this one, and nothing is lost. `README.md` says what the fixtures hold.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can not go on has failed")]

mod daemon;
mod expected;
mod fixture;
mod opens;
mod rows;
