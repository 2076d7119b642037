//! `polyclaw mcp serve`: serves the tools of an instance on stdin and stdout. Stdout carries only the protocol.

use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::port::BoxFuture;
use polyclaw_server::mcp::{ApiMethod, ApiRefusal, CallDelivery, InstanceApi, ToolServer};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;

use crate::cli::CommandContext;
use crate::client::{ApiClient, CONNECTION_LOST_CODE, UNREACHABLE_CODE};
use crate::failure::CommandFailure;
use crate::ids::random_bytes;

/// Maximum size of one incoming message. Larger messages are dropped.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Serves until the client closes its end.
pub async fn run(context: &CommandContext) -> anyhow::Result<()> {
    let transport = AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout());
    let transport = transport.with_max_line_length(MAX_MESSAGE_BYTES);
    let running = rmcp::serve_server(ToolServer::new(RunningInstanceApi(context.clone())), transport).await;
    let running = running.map_err(|error| {
        CommandFailure::usage(format!("no MCP client is connected: {error}"))
            .hint("an MCP client must start this command; add it to the settings of the client")
    })?;
    running.waiting().await?;
    Ok(())
}

/// Calls whichever instance runs when a tool is called. An editor may start this process before any instance runs,
/// and keep it longer than one runs.
struct RunningInstanceApi(CommandContext);

impl InstanceApi for RunningInstanceApi {
    fn call_instance<'a>(
        &'a self,
        verb: ApiMethod,
        path: &'a str,
        body: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Value, ApiRefusal>> {
        Box::pin(async move {
            let client = ApiClient::new(&self.0).map_err(api_refusal)?;
            let answer = match verb {
                ApiMethod::Get => client.get_as(path).await,
                ApiMethod::Post => client.post_as(path, body.unwrap_or(&Value::Null)).await,
            };
            answer.map_err(api_refusal)
        })
    }

    fn new_nonce(&self) -> String {
        encode_hex(&random_bytes::<12>())
    }
}

fn api_refusal(failure: CommandFailure) -> ApiRefusal {
    let heard = match failure.code.as_str() {
        CONNECTION_LOST_CODE => CallDelivery::Perhaps,
        UNREACHABLE_CODE => CallDelivery::No,
        _ => CallDelivery::Yes,
    };
    ApiRefusal { code: failure.code, message: failure.message, hint: failure.hint, delivery: heard }
}
