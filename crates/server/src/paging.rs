//! Paged lists. A cursor is the position where the next page starts, so pages stay correct while rows are added.
//! Cursors are opaque, because the sort order may change, and a cursor of another list is rejected.

use polyclaw_api::paging::PageQuery;
use polyclaw_domain::hex::{decode_hex, encode_hex};

use crate::error::{Error, Result};

/// The largest page.
const MAX_PAGE_SIZE: usize = 1000;

/// A position in a list: the sort key, and the id that distinguishes equal keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagePosition {
    pub at: i64,
    pub id: String,
}

/// The requested page.
#[derive(Clone, Debug)]
pub struct PageRequest {
    list: &'static str,
    pub limit: usize,
    pub after: Option<PagePosition>,
}

impl PageRequest {
    /// Parses the page parameters of a list without others.
    pub fn from_page_query(list: &'static str, query: &PageQuery) -> Result<Self> {
        Self::from_query(list, query.limit, query.cursor.as_deref())
    }

    /// Parses the page parameters. `list` names the list, so that its cursors are distinct.
    pub fn from_query(list: &'static str, limit: Option<usize>, cursor: Option<&str>) -> Result<Self> {
        let after = match cursor {
            Some(cursor) => Some(decode_cursor(list, cursor).ok_or_else(invalid_cursor)?),
            None => None,
        };
        Ok(Self { list, limit: page_size(limit, 100)?, after })
    }

    /// The number of rows to read: one more than the page shows whether there is another page.
    pub fn row_limit(&self) -> usize {
        self.limit + 1
    }

    /// Cuts the rows to the page, and returns the cursor of the next one.
    pub fn cut_page<T>(&self, rows: &mut Vec<T>, place: impl Fn(&T) -> PagePosition) -> Option<String> {
        let more = rows.len() > self.limit;
        rows.truncate(self.limit);
        rows.last().filter(|_| more).map(|last| encode_cursor(self.list, &place(last)))
    }
}

pub fn invalid_cursor() -> Error {
    Error::invalid_field("cursor", "must be the next_cursor of a page of this list")
}

/// Returns the number of rows of a page.
pub fn page_size(limit: Option<usize>, usual: usize) -> Result<usize> {
    match limit {
        Some(0) => Err(Error::invalid_field("limit", "must be at least 1")),
        Some(n) => Ok(n.min(MAX_PAGE_SIZE)),
        None => Ok(usual),
    }
}

fn encode_cursor(list: &str, place: &PagePosition) -> String {
    encode_hex(format!("{list} {} {}", place.at, place.id).as_bytes())
}

fn decode_cursor(list: &str, cursor: &str) -> Option<PagePosition> {
    let text = String::from_utf8(decode_hex(cursor)?).ok()?;
    let (at, id) = text.strip_prefix(list)?.strip_prefix(' ')?.split_once(' ')?;
    Some(PagePosition { at: at.parse().ok()?, id: id.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(at: i64, id: &str) -> PagePosition {
        PagePosition { at, id: id.to_owned() }
    }

    #[test]
    fn cursor_round_trips_and_is_alphanumeric() {
        for kept in [place(7, "agent:main:web:dm:a b%2f日本"), place(-1, ""), PagePosition::default()] {
            let cursor = encode_cursor("sessions", &kept);
            assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{cursor}");
            assert_eq!(PageRequest::from_query("sessions", None, Some(&cursor)).unwrap().after, Some(kept));
        }
    }

    #[test]
    fn malformed_or_foreign_cursor_is_refused() {
        let of_turns = encode_cursor("turns", &place(7, ""));
        for wrong in [of_turns.as_str(), "", "zz", "7", "agent:main", "日"] {
            assert_eq!(
                PageRequest::from_query("events", None, Some(wrong)).unwrap_err().code(),
                "invalid_parameter"
            );
        }
    }

    #[test]
    fn only_a_full_page_has_a_next_cursor() {
        let paging = PageRequest::from_query("turns", Some(2), None).unwrap();
        let mut rows = vec![1, 2, 3];
        let next = paging.cut_page(&mut rows, |row| place(*row, "")).unwrap();
        assert_eq!((rows.len(), decode_cursor("turns", &next)), (2, Some(place(2, ""))));
        assert_eq!(paging.cut_page(&mut rows, |row| place(*row, "")), None);
        assert_eq!(PageRequest::from_query("turns", Some(9999), None).unwrap().limit, MAX_PAGE_SIZE);
        assert!(PageRequest::from_query("turns", Some(0), None).is_err());
    }
}
