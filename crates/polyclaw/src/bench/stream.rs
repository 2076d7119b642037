//! Measures how long a token takes from the model's connection to the reader's.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use polyclaw_testkit::model_server::{ReplyGate, ReplyScript};
use reqwest::{RequestBuilder, Response};
use serde_json::json;

use crate::bench::bench_daemon::BenchDaemon;
use crate::bench::{BenchmarkReport, FigureTarget, OperationTimes};

/// Tokens of one answer that are timed separately.
const TIMED_TOKENS: usize = 8;

pub async fn run(report: &mut BenchmarkReport, seconds: Duration) -> anyhow::Result<()> {
    let subject = BenchDaemon::start("").await?;
    let (mut direct, mut forwarded) = (StreamLatency::default(), StreamLatency::default());
    let began = Instant::now();
    while began.elapsed() < seconds {
        let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
        direct.time_request(&subject, subject.model_request(&body)).await?;
        let user = format!("stream-{}", forwarded.first.len() / 50);
        let body = json!({ "model": "polyclaw", "user": user, "stream": true,
            "messages": [{ "role": "user", "content": "hi" }] });
        forwarded.time_request(&subject, subject.daemon_request("/v1/chat/completions", &body)).await?;
    }
    let added = |ours: &mut OperationTimes, theirs: &mut OperationTimes, share| {
        ours.percentile(share) - theirs.percentile(share)
    };
    let first = added(&mut forwarded.first, &mut direct.first, 0.5);
    report.add("first token, overhead over a direct call, p50", first, "ms", Some(FigureTarget::AtMost(2.0)));
    let first = added(&mut forwarded.first, &mut direct.first, 0.99);
    report.add("first token, overhead over a direct call, p99", first, "ms", None);
    let later = added(&mut forwarded.later, &mut direct.later, 0.5);
    report.add(
        "later tokens, overhead over a direct call, p50",
        later,
        "ms",
        Some(FigureTarget::AtMost(2.0)),
    );
    Ok(())
}

/// Times from the model releasing a token to the reader receiving it.
#[derive(Default)]
struct StreamLatency {
    first: OperationTimes,
    later: OperationTimes,
}

impl StreamLatency {
    /// Times one request. The model holds back each token until its gate opens, so that only the transport is timed.
    async fn time_request(&mut self, subject: &BenchDaemon, request: RequestBuilder) -> anyhow::Result<()> {
        let gates: Vec<ReplyGate> = (0..TIMED_TOKENS).map(|_| ReplyGate::new()).collect();
        let script = gates.iter().enumerate().fold(ReplyScript::new().text("start "), |script, (n, gate)| {
            script.gate(gate).text(format!("token{n} "))
        });
        subject.model.answer_with(move |_| script.clone());
        let mut answer = request.send().await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        read_until(&mut answer, "start").await?;
        for (n, gate) in gates.iter().enumerate() {
            let began = Instant::now();
            gate.open();
            read_until(&mut answer, &format!("token{n}")).await?;
            let times = if n == 0 { &mut self.first } else { &mut self.later };
            times.push(began.elapsed());
        }
        while answer.chunk().await?.is_some() {}
        Ok(())
    }
}

async fn read_until(answer: &mut Response, word: &str) -> anyhow::Result<()> {
    loop {
        let chunk = answer.chunk().await?.context("the answer ended early")?;
        if String::from_utf8_lossy(&chunk).contains(word) {
            return Ok(());
        }
    }
}
