//! Memory flush: extracts lasting facts from history before it is compacted.

/// Maximum number of facts from one compaction.
const MAX_FACTS: usize = 12;
/// Maximum length of a fact, in characters. Longer text stays in the summary.
const MAX_FACT_CHARS: usize = 400;
/// Maximum tokens of the answer.
pub const MAX_ANSWER_TOKENS: u32 = 600;

/// The system prompt of the extraction.
pub const FLUSH_SYSTEM_PROMPT: &str = "The following conversation is about to be compacted. List its facts that \
                                       stay true and are useful in later conversations: who people are, \
                                       preferences, decisions, names, numbers, dates, standing requests. Leave out \
                                       small talk, secrets such as passwords and keys, tool output, and anything \
                                       that mattered only at the time. Write one fact per line. Each line starts \
                                       with \"- \" and is one complete sentence that is understandable without \
                                       context. If there are no such facts, answer NONE.";

/// Parses the facts in an answer. Other text around them is ignored.
pub fn parse_facts(answer: &str) -> Vec<String> {
    let listed = answer.lines().filter_map(|line| line.trim_start().strip_prefix("- ").map(str::trim));
    let kept = listed.filter(|fact| !fact.is_empty() && fact.chars().count() <= MAX_FACT_CHARS);
    let mut facts: Vec<String> = Vec::new();
    for fact in kept {
        if facts.len() < MAX_FACTS && !facts.iter().any(|known| known == fact) {
            facts.push(fact.to_owned());
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_facts_are_parsed_without_duplicates() {
        let answer = format!(
            "Here they are:\n- Ana lives in Porto.\n  - Ana lives in Porto.\n- \n- {}\nNONE",
            "x".repeat(401)
        );
        assert_eq!(parse_facts(&answer), ["Ana lives in Porto."]);
        assert!(parse_facts("NONE").is_empty());
        let many: String = (0..40).map(|n| format!("- fact {n}\n")).collect();
        assert_eq!(parse_facts(&many).len(), MAX_FACTS);
    }
}
