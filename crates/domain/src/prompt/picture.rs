//! Images in a prompt: the newest are shown, those before them are named.

use super::{Line, frame, inert};
use crate::media::{Gallery, Image, Media, MediaHash, SHOWN, SHOWN_BYTES};
use crate::message::{Attachment, Role, attachments, images};
use crate::provider::PromptMessage;

/// Whose data an image is that a tool has shown. Nobody else can write a frame of this turn.
const OF_TOOL: &str = "image of a tool";

/// The images a prompt of these lines shows at most, the newest first.
pub fn newest(lines: &[Line]) -> Vec<&MediaHash> {
    all(lines).take(SHOWN).collect()
}

fn all(lines: &[Line]) -> impl Iterator<Item = &MediaHash> {
    lines.iter().rev().filter(|line| shows(line)).flat_map(|line| images(&line.parts).rev().map(Media::hash))
}

/// Whether what came with it is shown: what a person attached, or a tool read.
fn shows(line: &Line) -> bool {
    line.role == Role::Tool || (line.role == Role::User && line.origin.is_person())
}

/// The images of one prompt, asked for in the order of its lines.
pub(super) struct Pictures<'a> {
    gallery: &'a Gallery,
    /// How many of the first are only named.
    named: usize,
}

impl<'a> Pictures<'a> {
    pub fn of(lines: &[Line], gallery: &'a Gallery) -> Self {
        let mut bytes = 0;
        let fits = |hash: &&MediaHash| {
            bytes += gallery.get(*hash).map_or(0, |image| image.bytes().len());
            bytes <= SHOWN_BYTES
        };
        let shown = newest(lines).into_iter().take_while(fits).count();
        Self { gallery, named: all(lines).count() - shown }
    }

    fn next(&mut self, media: &Media) -> Option<Image> {
        if self.named > 0 {
            self.named -= 1;
            return None;
        }
        self.gallery.get(media.hash()).cloned()
    }

    /// The person's own words, then what came with them. A file is data, whoever attached it.
    pub fn said(&mut self, line: &Line, nonce: &str) -> PromptMessage {
        let mut text = match &line.author {
            Some(author) => format!("{}\n{}", author.mark(nonce), line.text),
            None => line.text.clone(),
        };
        let mut images = Vec::new();
        for attachment in attachments(&line.parts) {
            text.push('\n');
            text.push_str(&self.attached(attachment, nonce, &mut images));
        }
        PromptMessage::User { text, images }
    }

    /// What a tool has shown, if it has: results of tools are words alone to most providers.
    pub fn of_tool(&mut self, line: &Line, nonce: &str) -> Option<PromptMessage> {
        let mut images = Vec::new();
        let named: Vec<_> =
            attachments(&line.parts).map(|one| self.attached(one, nonce, &mut images)).collect();
        (!named.is_empty())
            .then(|| PromptMessage::User { text: frame(OF_TOOL, nonce, &named.join("\n")), images })
    }

    fn attached(&mut self, attachment: &Attachment, nonce: &str, shown: &mut Vec<Image>) -> String {
        let plain = |text: &str| text.replace(['"', '<', '>', '\n', '\r'], " ");
        let title = format!("attachment {} ({})", plain(&attachment.name), plain(&attachment.media_type));
        let title = inert(&title, nonce);
        if let Some(media) = &attachment.media {
            let Some(image) = self.next(media) else { return format!("[{title}: no longer shown]") };
            shown.push(image);
            return format!("[{title}]");
        }
        match (&attachment.text, &attachment.url) {
            (Some(text), _) => frame(&title, nonce, text),
            (None, Some(url)) => format!("[{title}: {}]", plain(url)),
            (None, None) => format!("[{title}]"),
        }
    }
}

/// Somebody said it: it is no image that a tool brought.
pub(super) fn is_said(message: &PromptMessage, nonce: &str) -> bool {
    let mark = format!("<input-{nonce} origin=\"{OF_TOOL}\">");
    matches!(message, PromptMessage::User { text, .. } if !text.starts_with(&mark))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{called, line, result};
    use super::super::{estimate_tokens, insert_aside, render};
    use super::*;
    use crate::media::{MOST_BYTES, TOKENS};
    use crate::message::{Origin, Part};

    fn image(content: &str, bytes: usize) -> Image {
        let mut image = [crate::media::tests::PNG, content.as_bytes()].concat();
        image.resize(image.len().max(bytes), 0);
        Image::read(image).unwrap()
    }

    fn with(said: Line, image: &Image) -> Line {
        let attachment = Attachment::image("cat.png", image.clone());
        let parts = said.parts.iter().cloned().chain([Part::Attachment(attachment)]).collect();
        Line { parts, ..said }
    }

    fn gallery(images: &[Image]) -> Gallery {
        images.iter().map(|image| (image.hash().clone(), image.clone())).collect()
    }

    fn shown(messages: &[PromptMessage]) -> Vec<usize> {
        messages.iter().map(|message| message.images().len()).collect()
    }

    #[test]
    fn an_image_goes_with_the_words_it_came_with() {
        let cat = image("cat", 0);
        let said = with(line(Role::User, "what is this?"), &cat);
        let messages =
            render(None, std::slice::from_ref(&said), &gallery(std::slice::from_ref(&cat)), "n0nce");
        let text = "what is this?\n[attachment cat.png (image/png)]".to_owned();
        assert_eq!(messages, [PromptMessage::User { text, images: vec![cat] }]);
        assert!(estimate_tokens(&said) > TOKENS);
        let gone = render(None, &[said], &Gallery::default(), "n0nce");
        let text = "what is this?\n[attachment cat.png (image/png): no longer shown]";
        assert_eq!(gone, [PromptMessage::user(text)], "what is not at hand is named");
    }

    #[test]
    fn only_the_newest_images_are_shown_even_if_all_are_the_same() {
        for of in [|_| 0, |n| n] {
            let images: Vec<_> = (0..SHOWN + 2).map(|n| image(&of(n).to_string(), 0)).collect();
            let lines: Vec<_> = images.iter().map(|one| with(line(Role::User, "look"), one)).collect();
            let messages = render(None, &lines, &gallery(&images), "n0nce");
            assert_eq!(shown(&messages), [vec![0; 2], vec![1; SHOWN]].concat());
            let PromptMessage::User { text, .. } = &messages[0] else { panic!() };
            assert!(text.ends_with("no longer shown]"), "{text}");
        }
    }

    #[test]
    fn large_images_are_shown_while_they_fit_together() {
        let images: Vec<_> = (0..6).map(|n| image(&n.to_string(), MOST_BYTES)).collect();
        let lines: Vec<_> = images.iter().map(|one| with(line(Role::User, "look"), one)).collect();
        assert_eq!(shown(&render(None, &lines, &gallery(&images), "n0nce")), [0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn what_a_tool_shows_comes_after_all_results_and_is_framed_as_data() {
        let cat = image("cat", 0);
        let lines = [
            line(Role::User, "look at both"),
            Line { parts: [called("1").parts, called("2").parts].concat(), ..line(Role::Assistant, "") },
            with(result("1"), &cat),
            result("2"),
            line(Role::User, "and?"),
        ];
        let messages = render(None, &lines, &gallery(&[cat]), "n0nce");
        assert_eq!(shown(&messages), [0, 0, 0, 0, 1, 0]);
        let PromptMessage::User { text, .. } = &messages[4] else { panic!() };
        let framed =
            "<input-n0nce origin=\"image of a tool\">\n[attachment cat.png (image/png)]\n</input-n0nce>";
        assert_eq!(text, framed);
    }

    #[test]
    fn what_is_recalled_stands_before_what_was_asked_not_before_what_a_tool_has_shown() {
        let cat = image("cat", 0);
        let lines = [line(Role::User, "look"), called("1"), with(result("1"), &cat)];
        let mut messages = render(None, &lines, &gallery(&[cat]), "n0nce");
        insert_aside(&mut messages, "memory", "she likes cats", "n0nce");
        let PromptMessage::User { text, .. } = &messages[0] else { panic!() };
        assert!(text.contains("origin=\"memory\""), "{text}");
        assert_eq!((messages.len(), messages[4].images().len()), (5, 1));
    }

    #[test]
    fn what_no_person_sent_brings_no_image_in() {
        let cat = image("cat", 0);
        let hook = Line { origin: Origin::Hook, ..with(line(Role::User, "look"), &cat) };
        assert!(newest(std::slice::from_ref(&hook)).is_empty());
        assert_eq!(shown(&render(None, &[hook], &gallery(&[cat]), "n0nce")), [0]);
    }
}
