//! Message content by type.

use polyclaw_domain::channel::AttachmentRef;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WhatsappContent {
    Text {
        text: TextBody,
    },
    Button {
        button: TemplateButton,
    },
    Interactive {
        interactive: InteractiveReply,
    },
    Location {
        location: SharedLocation,
    },
    Image {
        image: WhatsappMedia,
    },
    Document {
        document: WhatsappMedia,
    },
    Audio {
        audio: WhatsappMedia,
    },
    Video {
        video: WhatsappMedia,
    },
    Sticker {
        sticker: WhatsappMedia,
    },
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct TextBody {
    body: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct TemplateButton {
    text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct InteractiveReply {
    #[serde(alias = "list_reply")]
    button_reply: ReplyChoice,
}

#[derive(Debug, Deserialize)]
struct ReplyChoice {
    /// The id given to the button; a command for buttons of this channel.
    #[serde(default)]
    id: String,
    title: String,
}

impl ReplyChoice {
    fn text(&self) -> &str {
        if self.id.starts_with('/') { &self.id } else { &self.title }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct SharedLocation {
    latitude: f64,
    longitude: f64,
    name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WhatsappMedia {
    id: String,
    mime_type: String,
    filename: Option<String>,
    caption: String,
}

impl WhatsappContent {
    /// Media has no URL here, because only the token holder can fetch Meta's files.
    pub fn attachment_refs(&self) -> Vec<AttachmentRef> {
        let attached = |(kind, media): (&str, &WhatsappMedia)| AttachmentRef {
            name: media.filename.clone().unwrap_or_else(|| kind.to_owned()),
            media_type: media.mime_type.clone(),
            size: None,
            url: None,
            handle: Some(media.id.clone()),
        };
        self.media().map(attached).into_iter().collect()
    }

    fn media(&self) -> Option<(&'static str, &WhatsappMedia)> {
        match self {
            Self::Image { image } => Some(("image", image)),
            Self::Document { document } => Some(("document", document)),
            Self::Audio { audio } => Some(("audio", audio)),
            Self::Video { video } => Some(("video", video)),
            Self::Sticker { sticker } => Some(("sticker", sticker)),
            _ => None,
        }
    }

    /// Returns `None` for types without text and media, such as reactions.
    pub fn text(&self) -> Option<String> {
        Some(match self {
            Self::Text { text } => text.body.clone(),
            Self::Button { button } => button.text.clone(),
            Self::Interactive { interactive } => interactive.button_reply.text().to_owned(),
            Self::Location { location: SharedLocation { latitude, longitude, name } } => {
                format!("{} {latitude}, {longitude}", name.as_deref().unwrap_or("Location:"))
            }
            media => media.media()?.1.caption.clone(),
        })
    }
}
