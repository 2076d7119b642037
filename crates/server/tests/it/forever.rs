#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore]
async fn forever() {
    let instance = crate::instance::Instance::start().await;
    let mut times = Vec::new();
    for n in 0..500 {
        let body = serde_json::json!({ "model": "main", "messages": [{ "role": "user", "content": format!("n{n}") }] });
        let at = std::time::Instant::now();
        instance.post("/v1/chat/completions", body).await.ok();
        times.push(at.elapsed());
    }
    times.sort();
    let mut health = Vec::new();
    for _ in 0..500 {
        let at = std::time::Instant::now();
        instance.get("/v1/nowhere").await;
        health.push(at.elapsed());
    }
    health.sort();
    println!("chat p50 {:?} p99 {:?}; 404 p50 {:?}", times[250], times[495], health[250]);
}
