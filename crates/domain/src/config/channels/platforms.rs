//! The accounts of chat platforms. Addresses can be changed, so that a server of one's own can stand in for a platform.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validation::is_matrix_user_id;
use crate::admission::AccountAccess;
use crate::config::report::ConfigReport;
use crate::config::secret::Secret;

/// A Telegram bot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct TelegramConfig {
    /// The token that @BotFather gave.
    pub bot_token: Secret,
    /// Where the Bot API is, if it is a server of your own.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    #[serde(flatten)]
    pub access: AccountAccess,
}

/// A Discord bot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct DiscordConfig {
    /// The token of the bot.
    pub bot_token: Secret,
    /// Where the REST API is, if it is a proxy of your own.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    /// Where the gateway is, if it is a proxy of your own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_url: Option<String>,
    #[serde(flatten)]
    pub access: AccountAccess,
}

/// How Slack reaches this instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlackMode {
    /// By a WebSocket that this instance opens; nothing has to be reachable from outside.
    #[default]
    Socket,
    /// By requests to `/channels/slack/<account>`.
    Events,
}

/// A Slack app.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct SlackConfig {
    /// The bot token, `xoxb-…`.
    pub bot_token: Secret,
    /// How Slack reaches this instance.
    #[serde(default)]
    pub mode: SlackMode,
    /// The app token, `xapp-…`, for socket mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_token: Option<Secret>,
    /// The signing secret of the app, for events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_secret: Option<Secret>,
    /// Where the Web API is, if it is a proxy of your own.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    #[serde(flatten)]
    pub access: AccountAccess,
}

/// A WhatsApp number of the Cloud API. Its webhook is `/channels/whatsapp/<account>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct WhatsappConfig {
    /// The access token of the app.
    pub access_token: Secret,
    /// The number's id; it is not the number.
    pub phone_number_id: String,
    /// The secret of the app: what Meta sends is signed with it.
    pub app_secret: Secret,
    /// The word that Meta repeats when the webhook is set up.
    pub verify_token: Secret,
    /// Where the Graph API is, if it is a proxy of your own.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    #[serde(flatten)]
    pub access: AccountAccess,
}

/// A Matrix user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct MatrixConfig {
    /// The address of the homeserver.
    #[schemars(url)]
    pub homeserver: String,
    /// The user, like `@polyclaw:example.org`.
    pub user_id: String,
    /// A token of the user. Either this or a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token: Option<Secret>,
    /// The user's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
    #[serde(flatten)]
    pub access: AccountAccess,
}

impl SlackConfig {
    pub(super) fn report_errors(&self, path: &str, report: &mut ConfigReport) {
        let missing = match self.mode {
            SlackMode::Socket if self.app_token.is_none() => "app_token",
            SlackMode::Events if self.signing_secret.is_none() => "signing_secret",
            _ => return,
        };
        report.add_error(
            path,
            format!("{missing} is missing"),
            format!("add {missing} = …, or use the other mode"),
        );
    }
}

impl MatrixConfig {
    pub(super) fn report_errors(&self, path: &str, report: &mut ConfigReport) {
        if self.access_token.is_some() == self.password.is_some() {
            let message = "a Matrix user needs an access_token or a password, one of them";
            report.add_error(path, message, "add access_token = \"env:MATRIX_TOKEN\"");
        }
        if !is_matrix_user_id(&self.user_id) {
            let message = format!("{:?} is no user of a homeserver", self.user_id);
            report.add_error(
                &format!("{path}.user_id"),
                message,
                "write it whole, like @polyclaw:example.org",
            );
        }
    }
}
