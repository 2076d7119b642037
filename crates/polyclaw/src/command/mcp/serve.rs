//! `polyclaw mcp serve`: the tools of an instance on stdin and stdout. Nothing else is on stdout than the protocol.

use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::port::BoxFuture;
use polyclaw_server::mcp::{ApiMethod, ApiRefusal, CallDelivery, InstanceApi, ToolServer};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;

use crate::cli::Context;
use crate::client::{Client, LOST, UNREACHABLE};
use crate::failure::Failure;
use crate::ids::random;

/// One message of the other side: a larger one is dropped.
const LARGEST_MESSAGE: usize = 4 * 1024 * 1024;

/// Serves until the other side closes its end.
pub async fn run(context: &Context) -> anyhow::Result<()> {
    let transport = AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout());
    let transport = transport.with_max_line_length(LARGEST_MESSAGE);
    let running = rmcp::serve_server(ToolServer::new(Running(context.clone())), transport).await;
    let running = running.map_err(|error| {
        Failure::usage(format!("nobody who speaks MCP is on the other end: {error}"))
            .hint("this command is started by an MCP client; name it in that client's settings")
    })?;
    running.waiting().await?;
    Ok(())
}

/// Whichever instance runs when a tool is called. An editor starts us before there is one, and lives longer than one.
struct Running(Context);

impl InstanceApi for Running {
    fn call_instance<'a>(
        &'a self,
        verb: ApiMethod,
        path: &'a str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Value, ApiRefusal>> {
        Box::pin(async move {
            let client = Client::new(&self.0).map_err(refusal)?;
            let answer = match verb {
                ApiMethod::Get => client.get(path).await,
                ApiMethod::Post => client.post(path, body.unwrap_or(&Value::Null)).await,
            };
            answer.map_err(refusal)
        })
    }

    fn new_nonce(&self) -> String {
        encode_hex(&random::<12>())
    }
}

fn refusal(failure: Failure) -> ApiRefusal {
    let heard = match failure.code.as_str() {
        LOST => CallDelivery::Perhaps,
        UNREACHABLE => CallDelivery::No,
        _ => CallDelivery::Yes,
    };
    ApiRefusal { code: failure.code, message: failure.message, hint: failure.hint, delivery: heard }
}
