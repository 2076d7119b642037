//! One suite for every engine: a check is a function of a `Db`, run on a SQLite file, on SQLite in memory and on
//! PostgreSQL. What only one engine can do has a file of its own.
#![allow(clippy::unwrap_used, reason = "a test that can not go on has failed")]

/// Makes a test of each check for each engine.
macro_rules! on_every_engine {
    ($($check:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $check() { $crate::engines::on_sqlite(super::$check); })*
        }

        mod in_memory {
            $(#[test] fn $check() { $crate::engines::in_memory(super::$check); })*
        }

        mod on_postgres {
            $(#[test] fn $check() { $crate::engines::on_postgres(super::$check); })*
        }
    };
}

/// The same for a team's ledger, which is a file of its own on SQLite.
macro_rules! on_every_ledger {
    ($($check:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $check() { $crate::engines::on_ledger_file(super::$check); })*
        }

        mod on_postgres {
            $(#[test] fn $check() { $crate::engines::on_postgres(super::$check); })*
        }
    };
}

mod agents;
mod approvals;
mod backlog;
mod brain;
mod budgets;
mod claims;
mod drafts;
mod engines;
mod envelopes;
mod events;
mod holders;
mod ingress;
mod intents;
mod jobs;
mod letters;
mod media;
mod messages;
mod outbox;
mod pairings;
mod plans;
mod postgres;
mod registry;
mod rounds;
mod rows;
mod runs;
mod schedules;
mod sessions;
mod sqlite;
mod tasks;
mod teams;
mod transactions;
mod turns;
mod usage;
