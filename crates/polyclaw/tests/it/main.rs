//! The real binary, a home of its own, and a scripted model.

mod answering;
mod crash;
mod first_run;
mod fixture;
mod help;
mod nouns;
mod refusals;
