//! `polyclaw control`: runs the control plane for service managers and manages its tokens.

use std::net::IpAddr;

use polyclaw_api::control::tokens::{CreatedTokenView, TokenList, TokenView};
use polyclaw_api::logins::{BrowserLogin, BrowserLoginList};
use serde_json::{Value, json};

use crate::cli::{CommandContext, client_runtime};
use crate::client::{ApiClient, encode_segment};
use crate::control::{self, ControlPlaneOptions};
use crate::output::cell;

const MAX_LISTED_ITEMS: usize = 10_000;

/// Run the control plane for a service manager, and manage its tokens and logins.
#[derive(clap::Args)]
#[command(
    visible_alias = "cp",
    after_help = "Examples:
  polyclaw control
  polyclaw control serve --port 18800
  polyclaw control serve --bind 0.0.0.0 --allow-host cp.example.com
  polyclaw control token make dashboard --scope read
  polyclaw control token revoke 01j…

SIGTERM and SIGINT stop the control plane and leave its instances running: the next control plane adopts them. It manages
the instances of this home; `polyclaw instances` connects to it."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<ControlCommand>,
}

#[derive(clap::Subcommand)]
enum ControlCommand {
    /// Run in the foreground until a signal arrives (default).
    #[command(after_help = "Examples:
  polyclaw control serve
  polyclaw control serve --port 18800
  polyclaw control serve --bind 0.0.0.0 --allow-host cp.example.com")]
    Serve(ControlServeArgs),
    /// Manage scoped tokens.
    #[command(after_help = "Examples:
  polyclaw control token list
  polyclaw control token make dashboard --scope read")]
    Token {
        #[command(subcommand)]
        verb: ControlTokenCommand,
    },
    /// Manage browser logins: list them, end one.
    #[command(after_help = "Examples:
  polyclaw control login list
  polyclaw control login end 3f2a…")]
    Login {
        #[command(subcommand)]
        verb: ControlLoginCommand,
    },
}

#[derive(clap::Args, Default)]
struct ControlServeArgs {
    /// Port to listen on. Defaults to POLYCLAW_CP_PORT, else 18800.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Address to listen on. Defaults to POLYCLAW_CP_BIND, else 127.0.0.1.
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Name or address that clients use, such as that of a reverse proxy. Repeatable. Adds to the comma-separated
    /// list in POLYCLAW_CP_ALLOWED_HOSTS.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Require no token. Allowed only on a loopback address.
    #[arg(long)]
    no_token: bool,
}

#[derive(clap::Subcommand)]
enum ControlLoginCommand {
    /// List logins, most recently used first.
    #[command(after_help = "Examples:
  polyclaw control login list")]
    List,
    /// End a login. The browser has to log in again.
    #[command(after_help = "Examples:
  polyclaw control login end 3f2a…")]
    End {
        /// ID that `polyclaw control login list` shows.
        id: String,
    },
}

#[derive(clap::Subcommand)]
enum ControlTokenCommand {
    /// List all tokens, newest first.
    #[command(after_help = "Examples:
  polyclaw control token list")]
    List,
    /// Create a token. It is shown only once.
    #[command(after_help = "Examples:
  polyclaw control token make dashboard
  polyclaw control token make deploy --scope operate")]
    Make {
        /// Name for people: the owner or purpose of the token.
        name: String,
        /// Scope: what the token allows.
        #[arg(long, default_value = "read", value_parser = ["read", "operate", "admin"])]
        scope: String,
    },
    /// Revoke a token. It stops working immediately.
    #[command(after_help = "Examples:
  polyclaw control token revoke 01j…")]
    Revoke {
        /// ID that `polyclaw control token list` shows.
        id: String,
    },
}

pub fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    match &args.verb {
        None => serve_control_plane(&ControlServeArgs::default(), context),
        Some(ControlCommand::Serve(args)) => serve_control_plane(args, context),
        Some(ControlCommand::Token { verb }) => client_runtime()?.block_on(run_token_command(verb, context)),
        Some(ControlCommand::Login { verb }) => client_runtime()?.block_on(run_login_command(verb, context)),
    }
}

fn serve_control_plane(args: &ControlServeArgs, context: &CommandContext) -> anyhow::Result<()> {
    let mut plan = ControlPlaneOptions {
        asks_for_token: !args.no_token,
        ..ControlPlaneOptions::from_options(args.bind, args.port)?
    };
    plan.allowed_hosts.extend(args.allow_host.iter().cloned());
    control::run(&context.home, &plan, Box::new(|_, _| Box::pin(async { Ok(()) })))
}

async fn run_login_command(verb: &ControlLoginCommand, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::for_control_plane(context)?;
    match verb {
        ControlLoginCommand::List => {
            let answer: BrowserLoginList = client.get_as("/logins").await?;
            let row = |one: &BrowserLogin| {
                vec![
                    cell(&one.id),
                    cell(&one.created_at),
                    cell(&one.used_at),
                    cell(&one.expires_at),
                    cell(&one.client),
                ]
            };
            let rows: Vec<_> = answer.logins.iter().map(row).collect();
            Ok(context.output.print_value(&answer, |output| {
                if rows.is_empty() {
                    "No browser is logged in.".to_owned()
                } else {
                    output.format_table(&["ID", "LOGGED IN", "LAST USED", "EXPIRES", "BROWSER"], &rows)
                }
            })?)
        }
        ControlLoginCommand::End { id } => {
            let answer: Value = client.delete_as(&format!("/logins/{}", encode_segment(id))).await?;
            Ok(context.output.print_value(&answer, |_| format!("Ended login {id}."))?)
        }
    }
}

async fn run_token_command(verb: &ControlTokenCommand, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::for_control_plane(context)?;
    match verb {
        ControlTokenCommand::List => {
            let tokens: Vec<TokenView> = client.list_pages::<TokenList>("/tokens", MAX_LISTED_ITEMS).await?;
            let row = |one: &TokenView| {
                vec![
                    cell(&one.id),
                    cell(&one.scope),
                    cell(&one.created_at),
                    cell(&one.revoked_at),
                    cell(&one.name),
                ]
            };
            let rows: Vec<_> = tokens.iter().map(row).collect();
            Ok(context.output.print_value(&json!({ "tokens": tokens }), |output| {
                if rows.is_empty() {
                    "No tokens.".to_owned()
                } else {
                    output.format_table(&["ID", "SCOPE", "CREATED", "REVOKED", "NAME"], &rows)
                }
            })?)
        }
        ControlTokenCommand::Make { name, scope } => {
            let made: CreatedTokenView =
                client.post_as("/tokens", &json!({ "name": name, "scope": scope })).await?;
            Ok(context.output.print_value(&made, |_| cell(&made.secret))?)
        }
        ControlTokenCommand::Revoke { id } => {
            let answer: Value = client.delete_as(&format!("/tokens/{}", encode_segment(id))).await?;
            Ok(context.output.print_value(&answer, |_| format!("Revoked token {id}."))?)
        }
    }
}
