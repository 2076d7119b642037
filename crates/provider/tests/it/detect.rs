use std::io::Write;
use std::net::TcpListener;

use polyclaw_provider::Kind;
use polyclaw_provider::detect::{Ports, Source, detect, from_servers};
use polyclaw_testkit::free_port;
use polyclaw_testkit::model_server::ModelServer;

fn nowhere() -> Ports {
    Ports { ollama: free_port(), llama_cpp: free_port(), lm_studio: free_port() }
}

#[tokio::test]
async fn a_key_wins_over_a_server_and_with_neither_nothing_is_found() {
    let server = ModelServer::start();
    let ports = Ports { ollama: server.address().port(), ..nowhere() };
    let key = |name: &str| (name == "GROQ_API_KEY").then(|| "k".to_owned());
    assert_eq!(detect(key, ports).await.unwrap().provider.kind, Kind::Groq);
    assert_eq!(detect(|_| None, ports).await.unwrap().provider.kind, Kind::Ollama);
    assert!(detect(|_| None, nowhere()).await.is_none());
}

#[tokio::test]
async fn each_server_is_found_on_its_port_with_a_model_to_chat_with() {
    let server = ModelServer::start();
    server.set_models(["nomic-embed-text:latest", "qwen3:8b"]);
    let port = server.address().port();
    for (ports, kind, name) in [
        (Ports { ollama: port, ..nowhere() }, Kind::Ollama, "ollama"),
        (Ports { llama_cpp: port, ..nowhere() }, Kind::OpenAiCompatible, "llama_cpp"),
        (Ports { lm_studio: port, ..nowhere() }, Kind::OpenAiCompatible, "lm_studio"),
    ] {
        let found = from_servers(ports).await.unwrap();
        assert_eq!((found.provider.kind, found.model.to_string()), (kind, format!("{name}/qwen3:8b")));
        assert_eq!(found.source, Source::Server { name, url: format!("http://127.0.0.1:{port}/v1/") });
    }
}

#[tokio::test]
async fn a_server_without_a_model_is_passed_over() {
    let server = ModelServer::start();
    server.set_models(["all-minilm-embed"]);
    let port = server.address().port();
    assert!(from_servers(Ports { ollama: port, llama_cpp: port, lm_studio: port }).await.is_none());
}

#[tokio::test]
async fn another_program_on_the_port_is_not_taken_for_a_model_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let body = "HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{\"status\":\"ok\"";
            let _ = socket.unwrap().write_all(body.as_bytes());
        }
    });
    assert!(from_servers(Ports { ollama: port, llama_cpp: port, lm_studio: port }).await.is_none());
}
