//! Budgets on the real binary, kill -9 included.

use std::time::Duration;

use polyclaw_testkit::model_server::{ModelServer, ReplyScript};
use serde_json::{Value, json};

use crate::fixture::{Home, until};

fn home(model: &ModelServer, budget: &str) -> Home {
    let home = Home::new();
    home.write_config(&format!(
        "[providers.lab]\nkind = \"openai_compatible\"\nbase_url = \"{}\"\nmodels = [\"demo\"]\n{budget}",
        model.url()
    ));
    home
}

fn instance(home: &Home) -> Value {
    home.run(&["usage", "--json"]).ok()["budgets"][0].clone()
}

#[test]
fn usage_shows_cost_and_budget_and_exhausted_budget_refuses() {
    let model = ModelServer::start();
    model.push(ReplyScript::reply("one").usage(1_000, 100));
    let home = home(
        &model,
        "[models.\"lab/demo\"]\ninput_usd_per_million = 3.0\noutput_usd_per_million = 15.0\n[budget]\nusd_per_day = 0.0045\n",
    );
    let _daemon = home.daemon();
    assert_eq!(home.run(&["agent", "-m", "hi"]).stdout, "one\n");
    let usage = home.run(&["usage", "--by", "day", "--json"]).ok();
    assert_eq!(
        (&usage["totals"][0]["cost_usd"], &usage["totals"][0]["unpriced_calls"]),
        (&json!(0.0045), &json!(0))
    );
    assert_eq!(
        (&usage["budgets"][0]["scope"], &usage["budgets"][0]["usd_left"]),
        (&json!("instance"), &json!(0.0))
    );
    let refused = home.run(&["agent", "-m", "more"]);
    assert!(refused.code == 1 && refused.stderr.contains("[budget_exhausted]"), "{}", refused.stderr);
    assert!(refused.stderr.contains("It resets at"), "{}", refused.stderr);
    let table = home.run(&["usage"]).stdout;
    assert!(table.contains("$0.0045") && table.contains("$0.0000 of $0.0045"), "{table}");
    assert_eq!(model.request_count(), 1, "the second call was not made");
}

#[test]
fn budget_reservation_of_killed_process_is_released() {
    let model = ModelServer::start();
    model.push(ReplyScript::new().text("beg").wait(Duration::from_secs(60)).text("un"));
    let home = home(&model, "[budget]\ntokens_per_day = 100000\n");
    let mut daemon = home.daemon();
    let mut asking = home.command(&["agent", "-m", "hi"]).spawn().unwrap();
    until("the call is reserved", || instance(&home)["tokens_reserved"].as_i64() > Some(8_000));
    until("it is in progress", || model.request_count() == 1);
    daemon.kill();
    let _ = asking.wait();
    model.push(ReplyScript::reply("done").usage(10, 5));
    let _daemon = home.daemon();
    until("the turn is done", || home.transcript("agent:main:main").len() == 2);
    let now = instance(&home);
    assert_eq!((&now["tokens_reserved"], &now["tokens_spent"]), (&json!(0), &json!(15)), "{now}");
}
