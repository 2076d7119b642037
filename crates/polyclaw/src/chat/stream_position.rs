//! The chat's position in the stream: the server process and its last received frame.

use polyclaw_api::stream::{StreamEvent, StreamOpened, StreamQuery};

use crate::stream::StreamFrame;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct StreamPosition {
    /// The server process. Frame numbers of another process are unrelated.
    epoch: Option<String>,
    seen: u64,
    /// Frame number when the chat started. Earlier messages are stored; texts that were being streamed are repeated
    /// under earlier numbers.
    began: u64,
    /// Requests this process's retained frames from the start, because some after the last received frame are lost.
    from_start: bool,
}

impl StreamPosition {
    /// Returns the query that tells the server where to resume.
    pub fn after_query(&self) -> StreamQuery {
        let seen = if self.from_start { 0 } else { self.seen.max(self.began) };
        StreamQuery { after: self.epoch.as_ref().map(|epoch| format!("{epoch}-{seen}")), code: None }
    }

    /// Advances to a frame. Returns false if the frame was already received.
    pub fn advance_to(&mut self, frame: &StreamFrame) -> bool {
        if frame.is_gap() {
            self.from_start = true;
            return true;
        }
        let number =
            frame.id.as_deref().and_then(|id| id.rsplit_once('-')).and_then(|(_, seq)| seq.parse().ok());
        match number {
            Some(seq) => {
                let is_new = seq > self.seen;
                self.seen = self.seen.max(seq);
                is_new
            }
            None => {
                if let StreamEvent::Opened(opened) = &frame.event {
                    self.begin_stream(opened);
                }
                true
            }
        }
    }

    /// Handles the first frame of a stream, which names the server process and its current frame number.
    fn begin_stream(&mut self, StreamOpened { epoch, seq, .. }: &StreamOpened) {
        let (seen, began) = match &self.epoch {
            None => (0, *seq),
            Some(known) if known == epoch => (self.seen.max(self.began), self.began),
            Some(_) => (0, 0),
        };
        *self = Self { epoch: Some(epoch.clone()), seen, began, from_start: false };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(id: Option<&str>, mut data: Value) -> StreamFrame {
        data["type"] = "event".into();
        data["session_key"] = "agent:main:main".into();
        StreamFrame::from_data(id.map(str::to_owned), data).unwrap()
    }

    fn hello(epoch: &str, seq: u64) -> StreamFrame {
        event(None, json!({ "event": "stream.opened", "epoch": epoch, "seq": seq }))
    }

    fn numbered(id: &str) -> StreamFrame {
        event(Some(id), json!({ "event": "session.changed", "seq": 1 }))
    }

    fn gap() -> StreamFrame {
        event(None, json!({ "event": "replay.gap", "message": "" }))
    }

    fn after(place: &StreamPosition) -> String {
        place.after_query().after.unwrap_or_default()
    }

    #[test]
    fn stream_resumes_after_last_frame_and_restarts_after_a_gap() {
        let mut place = StreamPosition::default();
        assert_eq!(after(&place), "");
        assert!(place.advance_to(&hello("a-b", 7)));
        assert_eq!(after(&place), "a-b-7");
        assert!(place.advance_to(&numbered("a-b-4")), "what was just being said as the chat began");
        assert_eq!(after(&place), "a-b-7");
        assert!(place.advance_to(&numbered("a-b-9")));
        assert_eq!(after(&place), "a-b-9");
        assert!(place.advance_to(&hello("a-b", 20)) && place.advance_to(&numbered("a-b-12")));
        // Same process: known frames are not applied again.
        assert!(place.advance_to(&hello("a-b", 9_000)) && place.advance_to(&gap()));
        assert_eq!(after(&place), "a-b-0");
        place.advance_to(&hello("a-b", 9_000));
        assert!(!place.advance_to(&numbered("a-b-12")) && place.advance_to(&numbered("a-b-8000")));
        // Another process: all frames are new.
        assert!(place.advance_to(&hello("c", 5)) && place.advance_to(&gap()));
        assert_eq!(after(&place), "c-0");
        place.advance_to(&hello("c", 6));
        assert!(place.advance_to(&numbered("c-1")) && place.advance_to(&numbered("c-6")));
        assert_eq!(after(&place), "c-6");
    }
}
