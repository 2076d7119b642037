//! Languages of the texts that the engine writes to people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Minimum number of words outside code for a text to count as English.
const MIN_ENGLISH_WORDS: usize = 3;

/// Minimum number of letters in these words.
const MIN_ENGLISH_CHARS: usize = 10;

/// A Chinese character outweighs this many words of other scripts: pasted logs are mostly English.
const WORDS_PER_HAN_CHARACTER: usize = 5;

/// Maximum number of characters of a text that are looked at.
const MAX_SCANNED_CHARS: usize = 4_000;

/// A language in which the engine writes to people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Locale {
    #[default]
    English,
    Chinese,
}

impl Locale {
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// Returns the language tag that is stored and typed.
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// Returns the language's own name.
    pub fn name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Chinese => "中文",
        }
    }

    /// Parses a language tag such as `en`, `zh`, `zh-CN` or `zh_Hant_TW`, in any case.
    pub fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.trim().split(['-', '_']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|locale| locale.tag().eq_ignore_ascii_case(primary))
    }

    /// Detects the language of a message from its script. `None` if the message does not decide it: emoji, numbers,
    /// commands, code, links, and texts of few words.
    pub fn detect(text: &str) -> Option<Self> {
        let scanned: String = text.chars().take(MAX_SCANNED_CHARS).collect();
        let (mut han, mut kana, mut words, mut alphabetic) = (0, 0, 0, 0);
        for part in prose_of(&scanned) {
            for token in part.split_whitespace().filter(|token| !token.starts_with('/')) {
                han += token.chars().filter(|c| is_han(*c)).count();
                kana += token.chars().filter(|c| is_kana(*c)).count();
                if let Some(count) = count_word_chars(token) {
                    words += 1;
                    alphabetic += count;
                }
            }
        }
        let has_enough = words >= MIN_ENGLISH_WORDS && alphabetic >= MIN_ENGLISH_CHARS;
        match han {
            // There are no Japanese texts; English is the language for everybody else.
            _ if kana * WORDS_PER_HAN_CHARACTER > han => Some(Self::English),
            0 => has_enough.then_some(Self::English),
            _ => (han * WORDS_PER_HAN_CHARACTER >= words).then_some(Self::Chinese),
        }
    }
}

/// Returns the parts of a text outside code blocks and code spans.
fn prose_of(text: &str) -> impl Iterator<Item = &str> {
    // Text between two backticks is code. A fence is three backticks in a row, so it keeps this order.
    text.split('`').step_by(2)
}

/// Returns the number of letters if a token is a word, possibly with punctuation around it.
fn count_word_chars(token: &str) -> Option<usize> {
    let word = token.trim_matches(|c: char| !c.is_alphanumeric());
    let is_word =
        word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '’' | '-')) && !word.is_empty();
    (is_word && !word.chars().any(is_han)).then(|| word.chars().filter(|c| c.is_alphabetic()).count())
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{31f0}'..='\u{31ff}')
}

/// Which language to use: one of them, or that of the person's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LanguageSetting {
    /// The language of the person's newest message that decides it, else English.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// English.
    #[serde(rename = "en")]
    English,
    /// Chinese.
    #[serde(rename = "zh")]
    Chinese,
}

impl LanguageSetting {
    pub fn as_str(self) -> &'static str {
        self.locale().map_or("auto", Locale::tag)
    }

    /// Parses `auto` or a language tag.
    pub fn parse(text: &str) -> Option<Self> {
        match Locale::from_tag(text) {
            Some(Locale::English) => Some(Self::English),
            Some(Locale::Chinese) => Some(Self::Chinese),
            None => text.trim().eq_ignore_ascii_case("auto").then_some(Self::Auto),
        }
    }

    /// Returns the language if this setting names one.
    pub fn locale(self) -> Option<Locale> {
        match self {
            Self::Auto => None,
            Self::English => Some(Locale::English),
            Self::Chinese => Some(Locale::Chinese),
        }
    }
}

/// The language of a conversation: the person's choice, and the language of their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConversationLanguage {
    /// Set with `/language`. `None`: the setting of the instance applies.
    pub chosen: Option<LanguageSetting>,
    /// The language of the newest message that decided it.
    pub detected: Option<Locale>,
}

impl ConversationLanguage {
    /// Returns the language to write in.
    pub fn resolve(self, instance: LanguageSetting) -> Locale {
        self.chosen.unwrap_or(instance).locale().or(self.detected).unwrap_or_default()
    }
}

/// A fixed text in all languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalizedText {
    pub english: &'static str,
    pub chinese: &'static str,
}

impl LocalizedText {
    pub const fn new(english: &'static str, chinese: &'static str) -> Self {
        Self { english, chinese }
    }

    pub fn get(self, locale: Locale) -> &'static str {
        match locale {
            Locale::English => self.english,
            Locale::Chinese => self.chinese,
        }
    }
}

/// Formats a text in one of two languages. Arguments are captured from the scope, as in `format!`; a text without its
/// translation does not compile.
#[macro_export]
macro_rules! localized {
    ($locale:expr, $english:literal, $chinese:literal $(,)?) => {
        match $locale {
            $crate::locale::Locale::English => ::std::format!($english),
            $crate::locale::Locale::Chinese => ::std::format!($chinese),
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_all_regions_are_parsed() {
        for (tag, locale) in [
            ("en", Some(Locale::English)),
            ("EN-us", Some(Locale::English)),
            ("zh", Some(Locale::Chinese)),
            (" zh-CN ", Some(Locale::Chinese)),
            ("zh_Hant_TW", Some(Locale::Chinese)),
            ("zhx", None),
            ("de", None),
            ("", None),
        ] {
            assert_eq!(Locale::from_tag(tag), locale, "{tag:?}");
        }
        for setting in [LanguageSetting::Auto, LanguageSetting::English, LanguageSetting::Chinese] {
            assert_eq!(LanguageSetting::parse(setting.as_str()), Some(setting));
        }
        assert_eq!(LanguageSetting::parse("Auto"), Some(LanguageSetting::Auto));
        assert_eq!(LanguageSetting::parse("fr"), None);
    }

    #[test]
    fn chinese_characters_decide_for_chinese() {
        for text in [
            "你好",
            "帮我看看 nginx 的配置",
            "解释一下：Exception in thread main at foo",
            "请运行 `cargo test` 并告诉我结果",
            "ok，继续",
            "𠮷野家怎么走",
            "鲜の每日在哪里可以买到",
        ] {
            assert_eq!(Locale::detect(text), Some(Locale::Chinese), "{text}");
        }
    }

    #[test]
    fn a_sentence_without_chinese_characters_decides_for_english() {
        for text in [
            "What is on my calendar today?",
            "Don't do that again, please.",
            "Was steht heute im Kalender?",
            "今日の予定を教えて",
            "run `打印 你好` and show me the output",
        ] {
            assert_eq!(Locale::detect(text), Some(Locale::English), "{text}");
        }
    }

    #[test]
    fn short_texts_and_texts_without_words_decide_nothing() {
        for text in [
            "",
            "ok",
            "yes please",
            "👍👍",
            "1234 5678 90",
            "/model openai/gpt-x",
            "https://example.com/a/b see",
            "`git status --short --branch now please`",
            "```\nfor all of them\n```",
            "What does 好 mean in this long sentence?",
        ] {
            assert_eq!(Locale::detect(text), None, "{text}");
        }
    }

    #[test]
    fn a_choice_precedes_the_instance_and_the_instance_precedes_detection() {
        let zh = Some(Locale::Chinese);
        for (chosen, instance, detected, expected) in [
            (None, LanguageSetting::Auto, None, Locale::English),
            (None, LanguageSetting::Auto, zh, Locale::Chinese),
            (None, LanguageSetting::English, zh, Locale::English),
            (Some(LanguageSetting::Auto), LanguageSetting::English, zh, Locale::Chinese),
            (Some(LanguageSetting::English), LanguageSetting::Chinese, zh, Locale::English),
            (Some(LanguageSetting::Chinese), LanguageSetting::English, None, Locale::Chinese),
        ] {
            assert_eq!(ConversationLanguage { chosen, detected }.resolve(instance), expected);
        }
    }

    #[test]
    fn localized_texts_capture_their_arguments() {
        let name = "ops";
        let text = |locale| localized!(locale, "Stopped: {name}.", "已停止：{name}。");
        assert_eq!(text(Locale::English), "Stopped: ops.");
        assert_eq!(text(Locale::Chinese), "已停止：ops。");
    }
}
