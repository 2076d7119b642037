//! Sets of characters by Unicode category.

pub(super) struct UnicodeClass(Vec<(char, char)>);

impl UnicodeClass {
    /// `class` is a regular expression class, such as `\p{L}`.
    pub fn from_class(class: &str) -> Self {
        let class = regex_syntax::parse(class).map(regex_syntax::hir::Hir::into_kind);
        let Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) = class else {
            return Self(Vec::new());
        };
        Self(class.ranges().iter().map(|range| (range.start(), range.end())).collect())
    }

    pub fn contains(&self, c: char) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < c);
        self.0.get(at).is_some_and(|(first, _)| *first <= c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicode_class_contains_only_its_characters() {
        let letter_class = UnicodeClass::from_class(r"\p{L}");
        assert!("aZéя日".chars().all(|c| letter_class.contains(c)));
        assert!("1 .\u{301}🦀".chars().all(|c| !letter_class.contains(c)));
    }
}
