use std::io::Write;
use std::net::TcpListener;

use polyclaw_provider::ProviderVendor;
use polyclaw_provider::detect::{DetectionSource, LocalServerPorts, detect_provider, from_servers};
use polyclaw_testkit::free_port;
use polyclaw_testkit::model_server::ModelServer;

fn nowhere() -> LocalServerPorts {
    LocalServerPorts { ollama: free_port(), llama_cpp: free_port(), lm_studio: free_port() }
}

#[tokio::test]
async fn environment_key_takes_precedence_over_local_server() {
    let server = ModelServer::start();
    let ports = LocalServerPorts { ollama: server.address().port(), ..nowhere() };
    let key = |name: &str| (name == "GROQ_API_KEY").then(|| "k".to_owned());
    assert_eq!(detect_provider(key, ports).await.unwrap().provider.kind, ProviderVendor::Groq);
    assert_eq!(detect_provider(|_| None, ports).await.unwrap().provider.kind, ProviderVendor::Ollama);
    assert!(detect_provider(|_| None, nowhere()).await.is_none());
}

#[tokio::test]
async fn local_servers_are_detected_with_chat_model() {
    let server = ModelServer::start();
    server.set_models(["nomic-embed-text:latest", "qwen3:8b"]);
    let port = server.address().port();
    for (ports, kind, name) in [
        (LocalServerPorts { ollama: port, ..nowhere() }, ProviderVendor::Ollama, "ollama"),
        (LocalServerPorts { llama_cpp: port, ..nowhere() }, ProviderVendor::OpenAiCompatible, "llama_cpp"),
        (LocalServerPorts { lm_studio: port, ..nowhere() }, ProviderVendor::OpenAiCompatible, "lm_studio"),
    ] {
        let found = from_servers(ports).await.unwrap();
        assert_eq!((found.provider.kind, found.model.to_string()), (kind, format!("{name}/qwen3:8b")));
        assert_eq!(
            found.source,
            DetectionSource::Server { name, url: format!("http://127.0.0.1:{port}/v1/") }
        );
    }
}

#[tokio::test]
async fn local_server_without_chat_model_is_skipped() {
    let server = ModelServer::start();
    server.set_models(["all-minilm-embed"]);
    let port = server.address().port();
    assert!(
        from_servers(LocalServerPorts { ollama: port, llama_cpp: port, lm_studio: port }).await.is_none()
    );
}

#[tokio::test]
async fn unrelated_program_on_port_is_not_detected() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let body = "HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{\"status\":\"ok\"";
            let _ = socket.unwrap().write_all(body.as_bytes());
        }
    });
    assert!(
        from_servers(LocalServerPorts { ollama: port, llama_cpp: port, lm_studio: port }).await.is_none()
    );
}
