//! Accounts of chat platforms. API URLs are configurable, so that your own server can replace a platform.

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
    /// The token from @BotFather.
    pub bot_token: Secret,
    /// URL of the Bot API, for a server of your own.
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
    /// The bot token.
    pub bot_token: Secret,
    /// URL of the REST API, for a proxy of your own.
    #[schemars(url)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_url: Option<String>,
    /// URL of the gateway, for a proxy of your own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_url: Option<String>,
    #[serde(flatten)]
    pub access: AccountAccess,
}

/// How Slack delivers events to this instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlackMode {
    /// Over a WebSocket that this instance opens; nothing has to be reachable from outside.
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
    /// How Slack delivers events to this instance.
    #[serde(default)]
    pub mode: SlackMode,
    /// The app token, `xapp-…`, for socket mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_token: Option<Secret>,
    /// The signing secret of the app, for events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_secret: Option<Secret>,
    /// URL of the Web API, for a proxy of your own.
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
    /// The id of the phone number, not the number itself.
    pub phone_number_id: String,
    /// The app secret, with which Meta signs its requests.
    pub app_secret: Secret,
    /// The verify token that Meta repeats when the webhook is set up.
    pub verify_token: Secret,
    /// URL of the Graph API, for a proxy of your own.
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
    /// The URL of the homeserver.
    #[schemars(url)]
    pub homeserver: String,
    /// The user, like `@polyclaw:example.org`.
    pub user_id: String,
    /// An access token of the user. Set either this or a password.
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
            let message = "a Matrix user needs either an access_token or a password";
            report.add_error(path, message, "add access_token = \"env:MATRIX_TOKEN\"");
        }
        if !is_matrix_user_id(&self.user_id) {
            let message = format!("{:?} is not a Matrix user id", self.user_id);
            report.add_error(
                &format!("{path}.user_id"),
                message,
                "use the full id, like @polyclaw:example.org",
            );
        }
    }
}
