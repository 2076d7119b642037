//! Decides which addresses are public. IPv6 uses an allowlist, so that unknown ranges are blocked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let reserved = match address.octets() {
        [0 | 10 | 127, ..] => true,
        // Carrier-grade NAT.
        [100, second, ..] => (64..128).contains(&second),
        [169, 254, ..] | [192, 168, ..] => true,
        [172, second, ..] => (16..32).contains(&second),
        // Protocol assignments, documentation, and 6to4 relays.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Benchmarking.
        [198, 18 | 19, ..] => true,
        // Multicast, reserved, broadcast.
        [first, ..] => first >= 224,
    };
    !reserved
}

/// Allows only global unicast, `2000::/3`, without ranges that embed an IPv4 address or contain no real hosts. Excludes
/// loopback, mapped, NAT64, unique local, link-local and multicast addresses.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let is_global = segments[0] & 0xe000 == 0x2000;
    let is_assigned = match (segments[0], segments[1]) {
        // 2001::/23 (Teredo, benchmarking, ORCHID and other protocol assignments), and documentation.
        (0x2001, second) => second >= 0x0200 && second != 0x0db8,
        // 6to4.
        (0x2002, _) => false,
        // Documentation: 3fff::/20.
        (0x3fff, second) => second >= 0x1000,
        _ => true,
    };
    // ISATAP embeds an IPv4 address in the lower half of any prefix.
    let is_isatap = matches!((segments[4], segments[5]), (0 | 0x0200, 0x5efe));
    is_global && is_assigned && !is_isatap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_accepted() {
        for text in
            ["1.1.1.1", "8.8.8.8", "100.63.0.1", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.167.1.1"]
        {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:81b::200e"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn private_addresses_are_refused() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a00:1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::",
            "3fff:1::1",
            "2606:4700::5efe:7f00:1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
