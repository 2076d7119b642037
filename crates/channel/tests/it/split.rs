//! What the engine cuts by a channel's limit fits its platform and joins to the stored text.

use std::collections::BTreeMap;

use polyclaw_channel::discord::DiscordAdapter;
use polyclaw_channel::matrix::MatrixAdapter;
use polyclaw_channel::slack::SlackAdapter;
use polyclaw_channel::telegram::TelegramAdapter;
use polyclaw_channel::whatsapp::WhatsappAdapter;
use polyclaw_domain::channel::{ChannelAdapter, ChatAddress};
use polyclaw_testkit::SimClock;

use crate::fixture::{hostile, outgoing};

/// A channel, how its platform counts, and the most it takes.
type Limit<'a> = (&'a dyn ChannelAdapter, fn(&str) -> usize, usize);

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// A changed message holds its text twice.
fn twice_in_json(text: &str) -> usize {
    let bytes = |c: char| match c {
        '"' | '\\' => 2,
        c if c.is_control() => 6,
        c => c.len_utf8(),
    };
    2 * text.chars().map(bytes).sum::<usize>()
}

/// Slack cuts what is longer as it is sent, with `&`, `<` and `>` escaped.
fn escaped(text: &str) -> usize {
    text.chars().map(|c| if matches!(c, '&' | '<' | '>') { 5 } else { 1 }).sum()
}

#[tokio::test]
async fn message_parts_fit_platform_limits_and_join_to_text() {
    let telegram = TelegramAdapter::from_config(&BTreeMap::new()).unwrap();
    let discord = DiscordAdapter::from_config(&BTreeMap::new()).unwrap();
    let matrix = MatrixAdapter::from_config(&BTreeMap::new()).unwrap();
    let slack = SlackAdapter::from_config(&BTreeMap::new(), SimClock::start()).unwrap();
    let whatsapp = WhatsappAdapter::from_config(&BTreeMap::new(), SimClock::start()).unwrap();
    let platforms: [Limit<'_>; 5] = [
        (&telegram, units, 4096),
        (&discord, chars, 2000),
        (&matrix, twice_in_json, 64_000),
        (&slack, escaped, 40_000),
        (&whatsapp, chars, 4096),
    ];
    let address = ChatAddress {
        channel: "x".to_owned(),
        account: "main".to_owned(),
        peer: "p".to_owned(),
        thread: None,
    };
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..2_000 {
        let length = random.usize(1..4_500);
        let text = format!("x{}", hostile(&mut random, length));
        for (channel, count, limit) in platforms {
            let parts = outgoing(&address, &text).split_by_limit(channel.capabilities("main").max_chars);
            assert!(parts.iter().all(|part| count(part.text()) <= limit));
            assert_eq!(
                parts.iter().map(polyclaw_domain::delivery::OutgoingMessage::text).collect::<String>(),
                text
            );
        }
    }
}
