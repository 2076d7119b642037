/// Errors of channel setup. Sending returns no errors but a `SendOutcome`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the {setting} of {channel} account '{account}' is not a valid URL")]
    Url { channel: &'static str, account: String, setting: &'static str },
    #[error("the reply_url of webhook '{account}' is not an http or https URL")]
    ReplyUrl { account: String },
    #[error("the url of a hook is not an http or https URL")]
    HookUrl,
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
}

impl Error {
    /// Stable error code, listed in docs/errors.md.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url { .. } => "channel_url",
            Self::ReplyUrl { .. } => "channel_reply_url",
            Self::HookUrl => "hook_url",
            Self::Client(_) => "channel_client",
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::Url { .. } => "use a full URL, like https://api.example.com, or omit it",
            Self::ReplyUrl { .. } | Self::HookUrl => "use a full URL, like https://chat.example.com/replies",
            Self::Client(_) => "check the proxy and certificate settings of this machine",
        }
    }
}
