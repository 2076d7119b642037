use std::time::Instant;
use std::sync::Arc;
use polyclaw_provider::*;
use crate::fixture::*;
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tmp() {
    for url in ["http://127.0.0.1:1", "https://api.example.com"] {
        let s = Instant::now();
        let settings = Settings { providers: vec![ProviderSettings::new("a", Kind::OpenAiCompatible).base_url(url)] };
        let _m = Models::new(settings, Arc::new(ManualClock::default())).unwrap();
        println!("TMP new {url} {:?}", s.elapsed());
    }
    let bench = Bench::new();
    let s = Instant::now();
    let bench = &bench;
    futures_util::future::join_all((0..32).map(|_| async move { for _ in 0..200 { bench.ask("openai/m", &user("hi")).await.unwrap(); } })).await;
    println!("TMP {} req/s conns {}", 6400.0 / s.elapsed().as_secs_f64(), bench.server.connection_count());
}
