/// Why a channel could not be set up. Sending has no errors: what became of a message is a `Sent`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the {setting} of {channel} account '{account}' is not an address that can be reached")]
    Url { channel: &'static str, account: String, setting: &'static str },
    #[error("the reply_url of webhook '{account}' is not an http or https address")]
    ReplyUrl { account: String },
    #[error("no HTTP client could be made: {0}")]
    Client(String),
}

impl Error {
    /// Stable, and documented for users.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url { .. } => "channel_url",
            Self::ReplyUrl { .. } => "channel_reply_url",
            Self::Client(_) => "channel_client",
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::Url { .. } => "write it whole, like https://api.example.com, or leave it out",
            Self::ReplyUrl { .. } => "write it whole, like https://chat.example.com/replies",
            Self::Client(_) => "look at the proxy and certificate settings of this machine",
        }
    }
}
