//! Many claimers in four processes, in a file and in PostgreSQL: every task has one owner, without errors.

use polyclaw_testkit::postgres::PostgresCluster;
use serde_json::Value;

use crate::fixture::{Home, ran};

const TASKS: &str = "400";

fn shared(figures: &Value) {
    let one = |name: &str| figures.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(one("tasks that have one owner")["value"].to_string(), format!("{TASKS}.0"));
    assert!(one("a claim, p99")["value"].as_f64().unwrap() > 0.0);
}

#[test]
fn claimers_in_four_processes_claim_each_task_once() {
    let home = Home::new();
    let measure = ["--json", "bench", "teams", "--tasks", TASKS];
    shared(&home.run(&measure).ok());
    let mut on_postgres = home.command(&measure);
    on_postgres.env("POLYCLAW_BENCH_DATABASE", PostgresCluster::for_process().fresh_database().unwrap());
    shared(&ran(on_postgres).ok());
}
