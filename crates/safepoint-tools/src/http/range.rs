//! Which addresses are not public: this machine, this link, this network, and the reserved ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range that is not public. Exhaustive: a question names each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Loopback,
    LinkLocal,
    Private,
    /// Reserved, for groups or unassigned.
    Special,
}

impl Range {
    /// The range of an address; none if it is public.
    pub(super) fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => of_four(address),
            IpAddr::V6(address) => of_six(address),
        }
    }

    /// Its name in rules, and where an address of it is, for people.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Loopback => ("loopback", "this machine (loopback)"),
            Self::LinkLocal => ("link-local", "on this link (link-local)"),
            Self::Private => ("private", "on a private network"),
            Self::Special => ("special", "reserved, and not public"),
        }
    }
}

/// Whether an address is public: not of this machine, this link or a private network, and not reserved.
///
/// ```
/// assert!(safepoint_tools::is_public([1, 1, 1, 1].into()));
/// assert!(!safepoint_tools::is_public([169, 254, 169, 254].into()));
/// ```
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    Range::of(address).is_none()
}

fn of_four(address: Ipv4Addr) -> Option<Range> {
    match address.octets() {
        [127, ..] => Some(Range::Loopback),
        [169, 254, ..] => Some(Range::LinkLocal),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Some(Range::Private),
        // "This" network, protocol assignments, the relays of 6to4, benchmarks, examples, multicast, the future.
        [0, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [224..=255, ..] => Some(Range::Special),
        _ => None,
    }
}

fn of_six(address: Ipv6Addr) -> Option<Range> {
    let within = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        of_four(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Range::Loopback),
        // An address of version 4 in another coat: mapped, translated, tunnelled.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => within(high, low),
        [0xfe80..=0xfebf, ..] => Some(Range::LinkLocal),
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Some(Range::Private),
        // Other tunnels and examples.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some(Range::Special),
        [0x2000..=0x3fff, ..] => None,
        _ => Some(Range::Special),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S8.9
    #[test]
    fn only_public_addresses_are_public() {
        for (address, range) in [
            ("127.0.0.1", Some(Range::Loopback)),
            ("127.9.9.9", Some(Range::Loopback)),
            ("::1", Some(Range::Loopback)),
            ("::ffff:127.0.0.1", Some(Range::Loopback)),
            ("64:ff9b::7f00:1", Some(Range::Loopback)),
            ("2002:7f00:1::", Some(Range::Loopback)),
            ("169.254.169.254", Some(Range::LinkLocal)),
            ("fe80::1", Some(Range::LinkLocal)),
            ("10.1.2.3", Some(Range::Private)),
            ("172.31.0.1", Some(Range::Private)),
            ("172.32.0.1", None),
            ("192.168.0.1", Some(Range::Private)),
            ("100.64.0.1", Some(Range::Private)),
            ("fd00::1", Some(Range::Private)),
            ("0.0.0.0", Some(Range::Special)),
            ("::", Some(Range::Special)),
            ("::7f00:1", Some(Range::Special)),
            ("224.0.0.1", Some(Range::Special)),
            ("ff02::1", Some(Range::Special)),
            ("2001:db8::1", Some(Range::Special)),
            ("8.8.8.8", None),
            ("2606:4700::1111", None),
            ("::ffff:8.8.8.8", None),
        ] {
            assert_eq!(Range::of(address.parse().unwrap()), range, "{address}");
        }
    }
}
