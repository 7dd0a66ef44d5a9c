//! Addresses, matched part by part, where a rule allows them to be fetched.
//!
//! **Invariants**: a `*` never stands for a part of a host's name that decides whose host it is, nor for what lies behind
//! it: `https://*.example/` is every host of `example`, and no other.

use super::pattern::{Pattern, climbs};

/// An address in its parts.
struct Parts<'a> {
    scheme: &'a str,
    host: String,
    port: Option<&'a str>,
    rest: &'a str,
}

/// The parts; none if it is nothing that can be judged.
fn parts(address: &str) -> Option<Parts<'_>> {
    let (scheme, behind) = address.split_once("://")?;
    let end = behind.find(['/', '?', '#']).unwrap_or(behind.len());
    let (authority, rest) = behind.split_at(end);
    let odd = |letter: char| letter.is_control() || letter.is_whitespace() || letter == '\\';
    if address.contains(odd) || !authority.is_ascii() || authority.contains(['@', '%']) {
        return None;
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let rest = if rest.is_empty() { "/" } else { rest };
    Some(Parts { scheme, host: host.to_ascii_lowercase(), port, rest })
}

/// Whether the address is as the pattern says.
pub(crate) fn fit(pattern: &str, address: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let (Some(wanted), Some(given)) = (parts(pattern), parts(address)) else { return false };
    let ports = match (wanted.port, given.port) {
        (None, None) => true,
        (Some(wanted), Some(given)) => Pattern::of(wanted).is_like(given, |digit| digit.is_ascii_digit()),
        _ => false,
    };
    let unescaped = |rest: &str| rest.to_ascii_lowercase().replace("%2e", ".");
    check(pattern).is_ok()
        && ports
        && wanted.scheme.eq_ignore_ascii_case(given.scheme)
        && Pattern::of(&wanted.host).is_like(&given.host, is_of_name)
        && Pattern::of(wanted.rest).is_like(given.rest, |_| true)
        && climbs(&unescaped(given.rest)) <= climbs(&unescaped(wanted.rest))
}

/// Whether the stars of such a pattern can be judged.
pub(crate) fn check(pattern: &str) -> Result<(), String> {
    let why = match parts(pattern) {
        _ if pattern == "*" => return Ok(()),
        None => "it names no host: write the whole of an address, https://HOST/*",
        Some(parts) if parts.scheme.contains('*') => "write http:// or https:// in full",
        Some(parts) if !is_judged(&parts.host) => {
            "in a host a `*` may only stand for what comes before a dot at the beginning, https://*.HOST/*"
        }
        Some(_) => return Ok(()),
    };
    Err(format!("what `{pattern}` allows cannot be judged, so this rule would never allow anything; {why}"))
}

fn is_judged(host: &str) -> bool {
    let is_any = host == "*";
    is_any || !host.strip_prefix("*.").unwrap_or(host).contains('*')
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-')
}
