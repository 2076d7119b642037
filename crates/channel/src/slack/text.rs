//! Slack's text format: `&`, `<` and `>` are escaped, and `<…>` contains a link or a mention.

/// Escapes text for Slack, so that nothing in it becomes a link or a mention.
pub(super) fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Converts Slack text to plain text and strips the account's own name in front.
pub(super) fn to_plain_text(raw: &str, own: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = without_own_name(raw, own);
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(&unescape_entities(before));
        let Some((inside, after)) = after.split_once('>') else {
            text.push('<');
            rest = after;
            break;
        };
        text.push_str(&render_markup(inside));
        rest = after;
    }
    text.push_str(&unescape_entities(rest));
    text
}

pub(super) fn mentions_user(raw: &str, user: &str) -> bool {
    raw.contains(&format!("<@{user}>")) || raw.contains(&format!("<@{user}|"))
}

fn without_own_name<'a>(raw: &'a str, own: &str) -> &'a str {
    let named = raw.trim_start().strip_prefix("<@").and_then(|rest| rest.strip_prefix(own));
    match named.and_then(|rest| rest.split_once('>')) {
        Some((label, rest)) if label.is_empty() || label.starts_with('|') => {
            rest.trim_start_matches([',', ':']).trim_start()
        }
        _ => raw,
    }
}

/// Renders the content of `<…>`: `@U1`, `#C1|general`, `!here`, `https://…|label`.
fn render_markup(inside: &str) -> String {
    let (target, label) = inside.split_once('|').unwrap_or((inside, ""));
    let (target, label) = (unescape_entities(target), unescape_entities(label));
    let shown = |sign: char, id: &str| {
        let name = if label.is_empty() { id } else { label.as_str() };
        format!("{sign}{}", name.trim_start_matches(sign))
    };
    if let Some(id) = target.strip_prefix('@') {
        return shown('@', id);
    }
    if let Some(id) = target.strip_prefix('#') {
        return shown('#', id);
    }
    match target.strip_prefix('!') {
        Some(date) if date.starts_with("date^") => label,
        Some(everybody) => shown('@', everybody),
        None if label.is_empty() || target.ends_with(&label) => {
            target.trim_start_matches("mailto:").to_owned()
        }
        None => format!("{label} ({target})"),
    }
}

fn unescape_entities(escaped: &str) -> String {
    escaped.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_markup_is_rendered_as_plain_text() {
        for (raw, text) in [
            ("hello", "hello"),
            ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
            ("<@UBOT> hi", "hi"),
            (" <@UBOT|claw>: /code hi", "/code hi"),
            ("<@UBOTTOM> hi", "@UBOTTOM hi"),
            ("ask <@UBOT> and <@U2|ann>", "ask @UBOT and @ann"),
            ("in <#C1|general> and <#C2>", "in #general and #C2"),
            ("<!here> <!subteam^S1|@ops> <!date^1^{date}|today>", "@here @ops today"),
            ("<https://a.example/?x=1&amp;y=2>", "https://a.example/?x=1&y=2"),
            ("<https://a.example|the page>", "the page (https://a.example)"),
            ("<mailto:a@b.example|a@b.example>", "a@b.example"),
            ("open < end", "open < end"),
            ("<", "<"),
            ("<>", ""),
        ] {
            assert_eq!(to_plain_text(raw, "UBOT"), text, "{raw}");
        }
    }

    #[test]
    fn outgoing_text_never_becomes_a_mention() {
        let hostile = "<!channel> <@U1> <https://evil.example|click> &lt;!here&gt; a<b>c&d";
        let written = escape_text(hostile);
        assert!(!written.contains(['<', '>']), "{written}");
        assert_eq!(to_plain_text(&written, "UBOT"), hostile);
        assert!(mentions_user("hi <@UBOT>", "UBOT") && mentions_user("<@UBOT|claw>", "UBOT"));
        assert!(!mentions_user(&escape_text("<@UBOT>"), "UBOT") && !mentions_user("<@UBOTTOM>", "UBOT"));
    }
}
