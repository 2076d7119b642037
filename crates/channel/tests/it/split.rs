//! What the engine cuts by a channel's limit fits its platform and joins to the stored text.

use std::collections::BTreeMap;

use polyclaw_channel::discord::Discord;
use polyclaw_channel::telegram::Telegram;
use polyclaw_domain::channel::{Address, Channel};

use crate::fixture::{hostile, outgoing};

/// How a platform counts.
type Count = fn(&str) -> usize;

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[test]
fn ten_thousand_texts_in_parts_are_the_texts() {
    let telegram = Telegram::from_config(&BTreeMap::new()).unwrap();
    let discord = Discord::from_config(&BTreeMap::new()).unwrap();
    let platforms =
        [(&telegram as &dyn Channel, units as Count, 4096), (&discord as &dyn Channel, chars as Count, 2000)];
    let address =
        Address { channel: "x".to_owned(), account: "main".to_owned(), peer: "p".to_owned(), thread: None };
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..10_000 {
        let length = random.usize(1..4_500);
        let text = format!("x{}", hostile(&mut random, length));
        for (channel, count, limit) in platforms {
            let parts = outgoing(&address, &text).split(channel.capabilities("main").max_chars);
            assert!(parts.iter().all(|part| count(part.text()) <= limit));
            assert_eq!(parts.iter().map(polyclaw_domain::delivery::Outgoing::text).collect::<String>(), text);
        }
    }
}
