//! Images in a prompt: the newest are shown, older ones are described.

use super::{TranscriptLine, frame_text, remove_nonce};
use crate::media::{AttachmentImage, Image, ImageMap, MAX_SHOWN_IMAGE_BYTES, MAX_SHOWN_IMAGES, MediaHash};
use crate::message::{MessageAttachment, MessageRole, attached_images, attachments};
use crate::provider::PromptMessage;

/// Frame origin of images that a tool returned. Only we can write a frame with this turn's nonce.
const TOOL_IMAGE_ORIGIN: &str = "image of a tool";

/// Returns the images that a prompt of these lines may show, newest first.
pub fn newest_images(lines: &[TranscriptLine]) -> Vec<&MediaHash> {
    all_images(lines).take(MAX_SHOWN_IMAGES).collect()
}

fn all_images(lines: &[TranscriptLine]) -> impl Iterator<Item = &MediaHash> {
    lines
        .iter()
        .rev()
        .filter(|line| shows_images(line))
        .flat_map(|line| attached_images(&line.parts).rev().map(AttachmentImage::hash))
}

/// Returns whether images of a line are shown: attachments of people and tool results.
fn shows_images(line: &TranscriptLine) -> bool {
    line.role == MessageRole::Tool || (line.role == MessageRole::User && line.origin.is_person())
}

/// The images of one prompt, consumed in the order of its lines.
pub(super) struct PromptImages<'a> {
    images: &'a ImageMap,
    /// Number of the oldest images that are only described.
    named: usize,
}

impl<'a> PromptImages<'a> {
    pub fn for_lines(lines: &[TranscriptLine], images: &'a ImageMap) -> Self {
        let mut bytes = 0;
        let fits = |hash: &&MediaHash| {
            bytes += images.get(*hash).map_or(0, |image| image.bytes().len());
            bytes <= MAX_SHOWN_IMAGE_BYTES
        };
        let shown = newest_images(lines).into_iter().take_while(fits).count();
        Self { images, named: all_images(lines).count() - shown }
    }

    fn next_image(&mut self, media: &AttachmentImage) -> Option<Image> {
        if self.named > 0 {
            self.named -= 1;
            return None;
        }
        self.images.get(media.hash()).cloned()
    }

    /// Returns a person's text followed by the attachments. Files are data, even if an owner attached them.
    pub fn person_message(&mut self, line: &TranscriptLine, nonce: &str) -> PromptMessage {
        let mut text = match &line.author {
            Some(author) => format!("{}\n{}", author.author_tag(nonce), line.text),
            None => line.text.clone(),
        };
        let mut images = Vec::new();
        for attachment in attachments(&line.parts) {
            text.push('\n');
            text.push_str(&self.render_attachment(attachment, nonce, &mut images));
        }
        PromptMessage::User { text, images }
    }

    /// Returns the images of a tool result as a separate message: most providers accept only text in tool results.
    pub fn tool_message(&mut self, line: &TranscriptLine, nonce: &str) -> Option<PromptMessage> {
        let mut images = Vec::new();
        let named: Vec<_> =
            attachments(&line.parts).map(|one| self.render_attachment(one, nonce, &mut images)).collect();
        (!named.is_empty()).then(|| PromptMessage::User {
            text: frame_text(TOOL_IMAGE_ORIGIN, nonce, &named.join("\n")),
            images,
        })
    }

    fn render_attachment(
        &mut self,
        attachment: &MessageAttachment,
        nonce: &str,
        shown: &mut Vec<Image>,
    ) -> String {
        let plain = |text: &str| text.replace(['"', '<', '>', '\n', '\r'], " ");
        let title = format!("attachment {} ({})", plain(&attachment.name), plain(&attachment.media_type));
        let title = remove_nonce(&title, nonce);
        if let Some(media) = &attachment.media {
            let Some(image) = self.next_image(media) else { return format!("[{title}: no longer shown]") };
            shown.push(image);
            return format!("[{title}]");
        }
        match (&attachment.text, &attachment.url) {
            (Some(text), _) => frame_text(&title, nonce, text),
            (None, Some(url)) => format!("[{title}: {}]", plain(url)),
            (None, None) => format!("[{title}]"),
        }
    }
}

/// Returns whether a message is from a person, not an image of a tool.
pub(super) fn is_person_message(message: &PromptMessage, nonce: &str) -> bool {
    let mark = format!("<input-{nonce} origin=\"{TOOL_IMAGE_ORIGIN}\">");
    matches!(message, PromptMessage::User { text, .. } if !text.starts_with(&mark))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{called, line, result};
    use super::super::{estimate_line_tokens, insert_turn_context, render_history};
    use super::*;
    use crate::media::{MAX_IMAGE_BYTES, TOKENS_PER_IMAGE};
    use crate::message::{MessageOrigin, MessagePart};

    fn image(content: &str, bytes: usize) -> Image {
        let mut image = [crate::media::tests::PNG, content.as_bytes()].concat();
        image.resize(image.len().max(bytes), 0);
        Image::from_bytes(image).unwrap()
    }

    fn with(message: TranscriptLine, image: &Image) -> TranscriptLine {
        let attachment = MessageAttachment::from_image("cat.png", image.clone());
        let parts = message.parts.iter().cloned().chain([MessagePart::Attachment(attachment)]).collect();
        TranscriptLine { parts, ..message }
    }

    fn gallery(images: &[Image]) -> ImageMap {
        images.iter().map(|image| (image.hash().clone(), image.clone())).collect()
    }

    fn shown(messages: &[PromptMessage]) -> Vec<usize> {
        messages.iter().map(|message| message.images().len()).collect()
    }

    #[test]
    fn image_is_shown_with_its_message() {
        let cat = image("cat", 0);
        let message = with(line(MessageRole::User, "what is this?"), &cat);
        let messages = render_history(
            None,
            std::slice::from_ref(&message),
            &gallery(std::slice::from_ref(&cat)),
            "n0nce",
        );
        let text = "what is this?\n[attachment cat.png (image/png)]".to_owned();
        assert_eq!(messages, [PromptMessage::User { text, images: vec![cat] }]);
        assert!(estimate_line_tokens(&message) > TOKENS_PER_IMAGE);
        let gone = render_history(None, &[message], &ImageMap::default(), "n0nce");
        let text = "what is this?\n[attachment cat.png (image/png): no longer shown]";
        assert_eq!(gone, [PromptMessage::user_text(text)], "what is not at hand is named");
    }

    #[test]
    fn only_newest_images_are_shown_even_if_identical() {
        for of in [|_| 0, |n| n] {
            let images: Vec<_> = (0..MAX_SHOWN_IMAGES + 2).map(|n| image(&of(n).to_string(), 0)).collect();
            let lines: Vec<_> = images.iter().map(|one| with(line(MessageRole::User, "look"), one)).collect();
            let messages = render_history(None, &lines, &gallery(&images), "n0nce");
            assert_eq!(shown(&messages), [vec![0; 2], vec![1; MAX_SHOWN_IMAGES]].concat());
            let PromptMessage::User { text, .. } = &messages[0] else { panic!() };
            assert!(text.ends_with("no longer shown]"), "{text}");
        }
    }

    #[test]
    fn large_images_are_shown_up_to_total_size() {
        let images: Vec<_> = (0..6).map(|n| image(&n.to_string(), MAX_IMAGE_BYTES)).collect();
        let lines: Vec<_> = images.iter().map(|one| with(line(MessageRole::User, "look"), one)).collect();
        assert_eq!(shown(&render_history(None, &lines, &gallery(&images), "n0nce")), [0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn tool_images_follow_results_and_are_framed_as_data() {
        let cat = image("cat", 0);
        let lines = [
            line(MessageRole::User, "look at both"),
            TranscriptLine {
                parts: [called("1").parts, called("2").parts].concat(),
                ..line(MessageRole::Assistant, "")
            },
            with(result("1"), &cat),
            result("2"),
            line(MessageRole::User, "and?"),
        ];
        let messages = render_history(None, &lines, &gallery(&[cat]), "n0nce");
        assert_eq!(shown(&messages), [0, 0, 0, 0, 1, 0]);
        let PromptMessage::User { text, .. } = &messages[4] else { panic!() };
        let framed =
            "<input-n0nce origin=\"image of a tool\">\n[attachment cat.png (image/png)]\n</input-n0nce>";
        assert_eq!(text, framed);
    }

    #[test]
    fn recalled_memory_precedes_user_message_not_tool_image() {
        let cat = image("cat", 0);
        let lines = [line(MessageRole::User, "look"), called("1"), with(result("1"), &cat)];
        let mut messages = render_history(None, &lines, &gallery(&[cat]), "n0nce");
        insert_turn_context(&mut messages, "memory", "she likes cats", "n0nce");
        let PromptMessage::User { text, .. } = &messages[0] else { panic!() };
        assert!(text.contains("origin=\"memory\""), "{text}");
        assert_eq!((messages.len(), messages[4].images().len()), (5, 1));
    }

    #[test]
    fn images_of_non_person_messages_are_not_shown() {
        let cat = image("cat", 0);
        let hook =
            TranscriptLine { origin: MessageOrigin::Hook, ..with(line(MessageRole::User, "look"), &cat) };
        assert!(newest_images(std::slice::from_ref(&hook)).is_empty());
        assert_eq!(shown(&render_history(None, &[hook], &gallery(&[cat]), "n0nce")), [0]);
    }
}
