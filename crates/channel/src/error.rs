/// Errors of channel setup. Sending returns no errors but a `SendOutcome`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the {setting} of {channel} account '{account}' is not an address that can be reached")]
    Url { channel: &'static str, account: String, setting: &'static str },
    #[error("the reply_url of webhook '{account}' is not an http or https address")]
    ReplyUrl { account: String },
    #[error("the url of a hook is not an http or https address")]
    HookUrl,
    #[error("no HTTP client could be made: {0}")]
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
            Self::Url { .. } => "write it whole, like https://api.example.com, or leave it out",
            Self::ReplyUrl { .. } | Self::HookUrl => "write it whole, like https://chat.example.com/replies",
            Self::Client(_) => "look at the proxy and certificate settings of this machine",
        }
    }
}
