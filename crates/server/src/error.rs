//! Errors in one format: `{"error":{"code","message","hint"?}}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use polyclaw_api::error::{ErrorBody, ErrorBodyDetail};
use polyclaw_engine::ErrorCategory;

use crate::auth::NamesSource;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Engine(#[from] polyclaw_engine::Error),
    #[error(transparent)]
    Control(#[from] polyclaw_control::Error),
    #[error("missing token")]
    Unauthorized,
    #[error("invalid token")]
    WrongToken,
    #[error("the one-time code was used before, or has expired")]
    UsedCode,
    #[error("there is no member '{0}' in this team")]
    UnknownMember(String),
    #[error("there is no login '{0}'")]
    UnknownLogin(String),
    #[error("the scope of this token does not allow this call: '{0}' is required")]
    Forbidden(&'static str),
    #[error("approving '{tool}' requires a token with the scope '{needed}'; this token can only deny it")]
    NotToApprove { tool: String, needed: &'static str },
    #[error("too many invalid tokens in a short time")]
    TooManyAttempts,
    #[error("the first call with this Idempotency-Key is still in progress")]
    RequestInProgress,
    #[error("this Idempotency-Key was used for another call")]
    KeyUsedElsewhere,
    #[error("the config was rejected: {0}")]
    ConfigRefused(String),
    #[error("the host '{0}' is not a name of this server")]
    HostNotAllowed(String, NamesSource),
    #[error("pages of '{0}' may not call this server")]
    OriginNotAllowed(String, NamesSource),
    #[error("no resource at {0}")]
    UnknownRoute(String),
    #[error("the method {0} is not allowed here")]
    WrongMethod(String),
    #[error("the body is larger than {0} bytes")]
    BodyTooLarge(usize),
    #[error("the body did not arrive in time")]
    BodyTimeout,
    #[error("the body could not be read")]
    BodyBroken,
    #[error("the body must be application/json")]
    WrongContentType,
    #[error("the body is not UTF-8")]
    InvalidUtf8,
    #[error("the body is not valid JSON: {0}")]
    MalformedJson(String),
    #[error("invalid body: {0}")]
    InvalidBody(String),
    #[error("the version of the file is missing in If-Match")]
    EtagMissing,
    #[error("the file was changed meanwhile")]
    EtagStale,
    #[error("{name}: {why}")]
    InvalidParameter { name: &'static str, why: String },
    #[error("attachments of type '{0}' are not supported")]
    AttachmentNotTaken(String),
    #[error("images are not fetched from URLs")]
    RemoteImage,
    #[error("there is no image '{0}'")]
    UnknownMedia(String),
    #[error("too much is attached: {0}")]
    AttachmentTooLarge(String),
    #[error("'{0}' is not a command")]
    UnknownCommand(String),
    #[error("there is no method '{0}'")]
    UnknownMethod(String),
    #[error("there is no hook '{0}'")]
    UnknownHook(String),
    #[error("there is no channel '{0}'")]
    UnknownChannel(String),
    #[error("the signature does not match the body")]
    BadSignature,
    #[error("the signed time differs from the server's by more than 5 minutes")]
    OldSignature,
    #[error("there is no model '{0}'")]
    UnknownModel(String),
    #[error("the agent '{0}' is not exposed")]
    NotExposed(String),
    #[error("there is no response '{0}'")]
    UnknownResponse(String),
    #[error("{0}")]
    NotReady(&'static str),
    /// A database fault that only a person can fix.
    #[error("{reason}")]
    StoreNotReady { code: &'static str, reason: &'static str },
    /// The turn failed, and this sentence is its reply.
    #[error("{sentence}")]
    TurnFailed { code: String, sentence: String },
    #[error("internal error; see the log")]
    Panicked,
}

impl Error {
    pub fn invalid_field(name: &'static str, why: impl ToString) -> Self {
        Self::InvalidParameter { name, why: why.to_string() }
    }

    pub fn code(&self) -> &str {
        match self {
            Self::Engine(error) => error.code(),
            Self::Control(error) => error.code(),
            Self::Unauthorized | Self::WrongToken => "unauthorized",
            Self::UsedCode => "code_already_used",
            Self::UnknownMember(_) => "unknown_member",
            Self::UnknownLogin(_) => "unknown_login",
            Self::Forbidden(_) | Self::NotToApprove { .. } => "wrong_scope",
            Self::TooManyAttempts => "too_many_attempts",
            Self::RequestInProgress => "request_in_progress",
            Self::KeyUsedElsewhere => "idempotency_key_used",
            Self::ConfigRefused(_) => "config_refused",
            Self::HostNotAllowed(..) => "host_not_allowed",
            Self::OriginNotAllowed(..) => "origin_not_allowed",
            Self::UnknownRoute(_) => "unknown_route",
            Self::WrongMethod(_) => "method_not_allowed",
            Self::BodyTooLarge(_) => "body_too_large",
            Self::BodyTimeout => "body_timeout",
            Self::BodyBroken => "body_broken",
            Self::WrongContentType => "unsupported_content_type",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::MalformedJson(_) => "malformed_json",
            Self::InvalidBody(_) => "invalid_body",
            Self::InvalidParameter { .. } => "invalid_parameter",
            Self::EtagMissing => "etag_missing",
            Self::EtagStale => "etag_stale",
            Self::AttachmentNotTaken(_) => "attachment_not_supported",
            Self::RemoteImage => "remote_image_not_allowed",
            Self::UnknownMedia(_) => "unknown_media",
            Self::AttachmentTooLarge(_) => "attachment_too_large",
            Self::UnknownCommand(_) => "unknown_command",
            Self::UnknownMethod(_) => "unknown_method",
            Self::UnknownHook(_) => "unknown_hook",
            Self::UnknownChannel(_) => "unknown_channel",
            Self::BadSignature | Self::OldSignature => "bad_signature",
            Self::UnknownModel(_) => "unknown_model",
            Self::NotExposed(_) => "not_exposed",
            Self::UnknownResponse(_) => "unknown_response",
            Self::NotReady(_) => "not_ready",
            Self::StoreNotReady { code, .. } => code,
            Self::TurnFailed { code, .. } => code,
            Self::Panicked => "internal",
        }
    }

    /// Returns the code for the health page, which shows only the state of the database.
    pub(crate) fn store_code(&self) -> &'static str {
        match self {
            Self::StoreNotReady { code, .. } => code,
            _ => "unavailable",
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::Engine(error) => engine_status(error),
            Self::Control(error) => control_status(error),
            Self::Forbidden(_) | Self::NotToApprove { .. } => StatusCode::FORBIDDEN,
            Self::TooManyAttempts => StatusCode::TOO_MANY_REQUESTS,
            Self::RequestInProgress | Self::ConfigRefused(_) => StatusCode::CONFLICT,
            Self::KeyUsedElsewhere => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unauthorized
            | Self::WrongToken
            | Self::BadSignature
            | Self::OldSignature
            | Self::UsedCode => StatusCode::UNAUTHORIZED,
            Self::HostNotAllowed(..) | Self::OriginNotAllowed(..) => StatusCode::FORBIDDEN,
            Self::UnknownRoute(_) | Self::UnknownHook(_) | Self::UnknownChannel(_) => StatusCode::NOT_FOUND,
            Self::UnknownModel(_) | Self::UnknownResponse(_) | Self::NotExposed(_) => StatusCode::NOT_FOUND,
            Self::UnknownMedia(_) | Self::UnknownLogin(_) | Self::UnknownMember(_) => StatusCode::NOT_FOUND,
            Self::WrongMethod(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTooLarge(_) | Self::AttachmentTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::EtagMissing => StatusCode::PRECONDITION_REQUIRED,
            Self::EtagStale => StatusCode::PRECONDITION_FAILED,
            Self::WrongContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::NotReady(_) | Self::StoreNotReady { .. } => StatusCode::SERVICE_UNAVAILABLE,
            // The status that OpenAI clients expect for an exhausted quota.
            Self::TurnFailed { .. } if self.is_budget_exhausted() => StatusCode::TOO_MANY_REQUESTS,
            Self::TurnFailed { .. } => StatusCode::BAD_GATEWAY,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
            Self::BodyBroken | Self::InvalidUtf8 | Self::MalformedJson(_) => StatusCode::BAD_REQUEST,
            Self::InvalidBody(_) | Self::InvalidParameter { .. } => StatusCode::BAD_REQUEST,
            Self::UnknownCommand(_) | Self::UnknownMethod(_) => StatusCode::BAD_REQUEST,
            // The status that OpenAI clients expect for content a model does not support.
            Self::AttachmentNotTaken(_) | Self::RemoteImage => StatusCode::BAD_REQUEST,
        }
    }

    /// Whether a budget is exhausted, so that an immediate retry is useless.
    pub fn is_budget_exhausted(&self) -> bool {
        matches!(self, Self::TurnFailed { code, .. } if code == "budget_exhausted")
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Engine(error) => error.hint(),
            Self::Control(error) => error.hint(),
            Self::Forbidden(_) => {
                Some("use a token with that scope; `polyclaw control token make` creates one")
            }
            Self::NotToApprove { .. } => Some("deny it, or have it approved with such a token"),
            Self::KeyUsedElsewhere => Some("use another key for another call"),
            Self::NotExposed(_) => Some("add it to a2a.expose in config.toml"),
            Self::ConfigRefused(_) => Some("the old config stays in effect"),
            Self::WrongToken => Some(
                "the token of an instance is in the file `token` of its home, that of a control plane in `cp/token`",
            ),
            Self::Unauthorized => Some(
                "send Authorization: Bearer <token>: the token of an instance is in the file `token` of its home, that of a \
                 control plane in `cp/token`; a browser logs in with the link of `polyclaw up`",
            ),
            Self::UsedCode => Some("`polyclaw up` prints another link"),
            Self::HostNotAllowed(_, NamesSource::Config) => Some("add it to gateway.allowed_hosts"),
            Self::HostNotAllowed(_, NamesSource::Command) => Some(
                "allow it with `polyclaw control serve --allow-host NAME`, or add it to POLYCLAW_CP_ALLOWED_HOSTS",
            ),
            Self::OriginNotAllowed(_, NamesSource::Config) => Some("add it to gateway.allowed_origins"),
            Self::OriginNotAllowed(_, NamesSource::Command) => {
                Some("only its own pages may call a control plane")
            }
            Self::UnknownRoute(_) => Some(
                "GET /api/v1/openapi.json lists the calls of an instance, GET /api/openapi.json those of a control \
                 plane",
            ),
            Self::AttachmentNotTaken(_) => Some(
                "models accept text, and PNG, JPEG, GIF and WebP images that are sent as data; send the content of \
                 anything else as text",
            ),
            Self::RemoteImage => Some("send the image itself, as a data: URL"),
            Self::AttachmentTooLarge(_) => Some("send less, or several messages"),
            Self::EtagMissing | Self::EtagStale => Some("read it again, and send its ETag"),
            Self::UnknownCommand(_) => Some("/help lists the commands"),
            Self::UnknownChannel(_) => Some("add an account for it to [channels] in config.toml"),
            Self::UnknownModel(_) => Some("GET /v1/models lists the agents"),
            _ => None,
        }
    }

    pub fn detail(&self) -> ErrorBodyDetail {
        ErrorBodyDetail {
            code: self.code().to_owned(),
            message: self.message(),
            hint: self.hint().map(str::to_owned),
            details: self.details(),
        }
    }

    fn details(&self) -> Option<serde_json::Value> {
        use polyclaw_control::Error as Control;
        let Self::Control(error) = self else { return None };
        Some(match error {
            Control::StartFailed { lines, .. } => serde_json::json!({ "log": lines }),
            Control::EtagStale { current } => serde_json::json!({ "current_etag": current }),
            Control::SecretWrite(fields) => serde_json::json!({ "blocked_fields": fields }),
            Control::MaskWithoutSecret(fields) => serde_json::json!({ "fields": fields }),
            Control::NameTaken(_) => serde_json::json!({ "conflict": "name" }),
            Control::PortTaken(_) | Control::PortInUse(_) => serde_json::json!({ "conflict": "port" }),
            _ => return None,
        })
    }

    /// Logs an internal error, because the response contains no details of it.
    pub fn log_internal(&self) {
        if self.status() == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(error = %self, code = self.code(), "call failed with an internal error");
        }
    }

    /// Internal errors are not shown in their own words, because these may name files and queries.
    fn message(&self) -> String {
        match self {
            Self::Engine(error) if error.category() == ErrorCategory::Alarm => Self::Panicked.to_string(),
            Self::Control(error) if error.action() == polyclaw_control::ErrorAction::Alarm => {
                Self::Panicked.to_string()
            }
            _ => self.to_string(),
        }
    }
}

impl From<polyclaw_store::Error> for Error {
    fn from(error: polyclaw_store::Error) -> Self {
        Self::Engine(error.into())
    }
}

fn engine_status(error: &polyclaw_engine::Error) -> StatusCode {
    match (error, error.category()) {
        (polyclaw_engine::Error::TooLong(..), _) => StatusCode::PAYLOAD_TOO_LARGE,
        (polyclaw_engine::Error::BacklogFull(_), _) => StatusCode::TOO_MANY_REQUESTS,
        (polyclaw_engine::Error::AgentNotAllowed(_), _) => StatusCode::FORBIDDEN,
        (_, ErrorCategory::Reject) => StatusCode::BAD_REQUEST,
        (_, ErrorCategory::NotFound) => StatusCode::NOT_FOUND,
        (_, ErrorCategory::Conflict) => StatusCode::CONFLICT,
        (_, ErrorCategory::Retry) => StatusCode::SERVICE_UNAVAILABLE,
        (_, ErrorCategory::Alarm) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn control_status(error: &polyclaw_control::Error) -> StatusCode {
    use polyclaw_control::ErrorAction;
    match error.action() {
        ErrorAction::Reject => StatusCode::BAD_REQUEST,
        ErrorAction::NotFound => StatusCode::NOT_FOUND,
        ErrorAction::Conflict => StatusCode::CONFLICT,
        ErrorAction::Precondition => StatusCode::PRECONDITION_REQUIRED,
        ErrorAction::Stale => StatusCode::PRECONDITION_FAILED,
        ErrorAction::Forbid => StatusCode::FORBIDDEN,
        ErrorAction::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorAction::Unfit => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorAction::Retry => StatusCode::SERVICE_UNAVAILABLE,
        ErrorAction::Gateway => StatusCode::BAD_GATEWAY,
        ErrorAction::GatewayTimeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorAction::Alarm => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = self.status();
        self.log_internal();
        let mut response = (status, Json(ErrorBody { error: self.detail() })).into_response();
        let headers = response.headers_mut();
        let is_passing = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        if is_passing && !self.is_budget_exhausted() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if matches!(self, Self::Unauthorized | Self::WrongToken) {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // For outer layers that reformat or count errors.
        response.extensions_mut().insert(self);
        response
    }
}
