//! Full-text search of memories. Ranking costs as much as there are rows that share a word, so the number of ranked
//! rows is bounded: by the owners if these have few memories, otherwise by leaving out frequent words.

use polyclaw_domain::memory::words;
use polyclaw_domain::recall::MemorySeq;

use super::MemoryOwnerCount;
use crate::error::{Error, Result};
use crate::params;
use crate::tx::Tx;

/// Approximate maximum number of ranked rows: 2,000 take two to five milliseconds.
const MAX_RANKED_ROWS: usize = 1_500;

/// Returns memories of these owners that share words with the text, best first.
pub fn search_by_words(
    tx: &mut Tx<'_>,
    owners: &[MemoryOwnerCount],
    text: &str,
    limit: usize,
) -> Result<Vec<MemorySeq>> {
    let words = words::query_words(text);
    if words.is_empty() || owners.is_empty() {
        return Ok(Vec::new());
    }
    let theirs: i64 = owners.iter().map(|share| share.memories).sum();
    if usize::try_from(theirs).is_ok_and(|theirs| theirs <= MAX_RANKED_ROWS) {
        return search_few_owners(tx, owners, &words, limit);
    }
    let ids: Vec<i64> = owners.iter().map(|share| share.owner).collect();
    let ids = serde_json::to_string(&ids).map_err(|e| Error::Other(e.to_string()))?;
    let chosen = select_search_terms(tx, words)?;
    match chosen.is_empty() {
        true => Ok(Vec::new()),
        false => search_many_owners(tx, &ids, &chosen, limit),
    }
}

/// Searches only the owners' own rows, for owners with few memories.
fn search_few_owners(
    tx: &mut Tx<'_>,
    owners: &[MemoryOwnerCount],
    words: &[String],
    limit: usize,
) -> Result<Vec<MemorySeq>> {
    const SQL: &str =
        "SELECT rowid FROM memories_fts WHERE memories_fts MATCH $1 AND rank MATCH 'bm25(1.0, 0.0)'
        ORDER BY rank LIMIT $2";
    let names: Vec<String> = owners.iter().map(|share| format!("o{}", share.owner)).collect();
    let wanted = format!("terms : ({}) AND owner : ({})", words.join(" OR "), names.join(" OR "));
    tx.query(SQL, params![&wanted, limit], |row| row.int(0))
}

/// Searches few words and filters by owner afterwards, for owners with many memories.
fn search_many_owners(
    tx: &mut Tx<'_>,
    owners: &str,
    chosen: &SearchTerms,
    limit: usize,
) -> Result<Vec<MemorySeq>> {
    macro_rules! sql {
        ($rank:literal, $order:literal) => {
            concat!(
                "SELECT w.rowid FROM memories_fts w CROSS JOIN memories m ON m.seq = w.rowid WHERE w.memories_fts MATCH $1 ",
                $rank,
                " AND m.owner IN (SELECT value FROM json_each($2)) ORDER BY ",
                $order,
                " LIMIT $3"
            )
        };
    }
    let (sql, wanted) = match chosen {
        SearchTerms::Rare(words) => (sql!("AND w.rank MATCH 'bm25(1.0, 0.0)'", "w.rank"), words.join(" OR ")),
        SearchTerms::Frequent(words) => (sql!("", "w.rowid DESC"), words.join(" AND ")),
    };
    tx.query(sql, params![&format!("terms : ({wanted})"), owners, limit], |row| row.int(0))
}

enum SearchTerms {
    /// Rows with any of these words; there are few.
    Rare(Vec<String>),
    /// Every word is frequent: rows with all of them, newest first, because ranks would hardly differ.
    Frequent(Vec<String>),
}

impl SearchTerms {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Rare(words) | Self::Frequent(words) if words.is_empty())
    }
}

/// Selects the rarest words whose rows are few enough to rank.
fn select_search_terms(tx: &mut Tx<'_>, words: Vec<String>) -> Result<SearchTerms> {
    let mut counted = Vec::with_capacity(words.len());
    for word in words {
        match count_rows_with(tx, &word)? {
            0 => {}
            rows => counted.push((rows, word)),
        }
    }
    counted.sort();
    if counted.first().is_some_and(|(rows, _)| *rows >= MAX_RANKED_ROWS) {
        return Ok(SearchTerms::Frequent(counted.into_iter().take(2).map(|(_, word)| word).collect()));
    }
    let mut total = 0;
    let few = counted.into_iter().take_while(|(rows, _)| {
        total += rows;
        total <= MAX_RANKED_ROWS
    });
    Ok(SearchTerms::Rare(few.map(|(_, word)| word).collect()))
}

/// Counts the rows with a word, up to the ranking limit.
fn count_rows_with(tx: &mut Tx<'_>, word: &str) -> Result<usize> {
    const SQL: &str =
        "SELECT COUNT(*) FROM (SELECT 1 FROM memories_fts WHERE memories_fts MATCH $1 LIMIT $2)";
    let count =
        tx.query_one(SQL, params![&format!("terms : {word}"), MAX_RANKED_ROWS], |row| row.count(0))?;
    Ok(count.unwrap_or(0))
}
