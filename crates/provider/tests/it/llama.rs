//! llama.cpp's server on the file the embedded engine reads, in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use polyclaw_provider::{ProviderSettings, ProviderVendor};

pub const KEY: &str = "sk-of-the-server";

pub struct LlamaServer {
    child: Child,
    pub url: String,
}

impl LlamaServer {
    /// Returns once it answers.
    pub fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (python, weights) =
            (root.join(".tools/python/bin/python"), root.join(".tools/model/smollm2.gguf"));
        for file in [&python, &weights] {
            assert!(file.exists(), "{} is missing: `scripts/need.sh rust` fetches it", file.display());
        }
        // It serves until its input ends: not even a test that is killed leaves it behind.
        let mut child = Command::new(python)
            .arg(root.join("tests/outside/llama.py"))
            .arg(KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        assert!(url.starts_with("http://"), "llama.cpp's server did not start; what it said is above");
        Self { child, url }
    }

    pub fn settings(&self) -> ProviderSettings {
        ProviderSettings::new("llama", ProviderVendor::OpenAiCompatible).base_url(&self.url)
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
