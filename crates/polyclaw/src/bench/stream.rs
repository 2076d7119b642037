//! How long a token takes from the model's connection to the reader's.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use polyclaw_testkit::model_server::{Gate, Script};
use reqwest::{RequestBuilder, Response};
use serde_json::json;

use crate::bench::subject::Subject;
use crate::bench::{Bar, Report, Times};

/// Tokens of one answer that are timed, each by itself.
const TOKENS: usize = 8;

pub async fn run(report: &mut Report, seconds: Duration) -> anyhow::Result<()> {
    let subject = Subject::start("").await?;
    let (mut direct, mut forwarded) = (Way::default(), Way::default());
    let began = Instant::now();
    while began.elapsed() < seconds {
        let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
        direct.time(&subject, subject.to_model(&body)).await?;
        let user = format!("stream-{}", forwarded.first.len() / 50);
        let body = json!({ "model": "polyclaw", "user": user, "stream": true,
            "messages": [{ "role": "user", "content": "hi" }] });
        forwarded.time(&subject, subject.to_daemon("/v1/chat/completions", &body)).await?;
    }
    let added =
        |ours: &mut Times, theirs: &mut Times, share| ours.percentile(share) - theirs.percentile(share);
    let first = added(&mut forwarded.first, &mut direct.first, 0.5);
    report.add("first token, over the direct way, p50", first, "ms", Some(Bar::AtMost(2.0)));
    let first = added(&mut forwarded.first, &mut direct.first, 0.99);
    report.add("first token, over the direct way, p99", first, "ms", None);
    let later = added(&mut forwarded.later, &mut direct.later, 0.5);
    report.add("later tokens, over the direct way, p50", later, "ms", Some(Bar::AtMost(2.0)));
    Ok(())
}

/// Times from the moment the model lets a token go to the moment its reader has it.
#[derive(Default)]
struct Way {
    first: Times,
    later: Times,
}

impl Way {
    /// The model holds every token back until it is let go: what is timed is the way alone.
    async fn time(&mut self, subject: &Subject, request: RequestBuilder) -> anyhow::Result<()> {
        let gates: Vec<Gate> = (0..TOKENS).map(|_| Gate::new()).collect();
        let script = gates.iter().enumerate().fold(Script::new().text("start "), |script, (n, gate)| {
            script.gate(gate).text(format!("token{n} "))
        });
        subject.model.answer(move |_| script.clone());
        let mut answer = request.send().await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        until(&mut answer, "start").await?;
        for (n, gate) in gates.iter().enumerate() {
            let began = Instant::now();
            gate.open();
            until(&mut answer, &format!("token{n}")).await?;
            let times = if n == 0 { &mut self.first } else { &mut self.later };
            times.push(began.elapsed());
        }
        while answer.chunk().await?.is_some() {}
        Ok(())
    }
}

async fn until(answer: &mut Response, word: &str) -> anyhow::Result<()> {
    loop {
        let chunk = answer.chunk().await?.context("the answer ended early")?;
        if String::from_utf8_lossy(&chunk).contains(word) {
            return Ok(());
        }
    }
}
