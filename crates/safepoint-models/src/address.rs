//! Addresses: what is put behind them, and what of them is shown.

use url::Url;

/// An address below another one. What is asked with the base stays asked: its query goes behind the path.
pub(crate) fn below(base: &str, path: &str) -> String {
    let base = base.split('#').next().unwrap_or_default();
    let (base, asked) = base.split_once('?').unwrap_or((base, ""));
    let (path, more) = path.split_once('?').unwrap_or((path, ""));
    let query: Vec<&str> = [asked, more].into_iter().filter(|query| !query.is_empty()).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{path}{mark}{}", base.trim_end_matches('/'), query.join("&"))
}

/// An address as it is shown: without a name and a password, a query, and a fragment, any of which may be a secret. Of
/// one that cannot be read, whatever stands before an `@` may be one.
pub(crate) fn shown(address: &str) -> String {
    let place = address.split(['?', '#']).next().unwrap_or_default();
    let unnamed = |text: &str| text.rsplit('@').next().unwrap_or_default().to_owned();
    match place.split_once("://") {
        Some((scheme, rest)) if Url::parse(address).is_ok() => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            format!("{scheme}://{}{path}", unnamed(authority))
        }
        _ => unnamed(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.8: a base URL with a query keeps it, behind the wire's own path.
    #[test]
    fn a_query_goes_behind_the_path() {
        for (base, path, whole) in [
            ("http://h/v1", "/messages", "http://h/v1/messages"),
            ("http://h/v1/", "/messages", "http://h/v1/messages"),
            ("http://h/v1?key=k", "/messages", "http://h/v1/messages?key=k"),
            ("http://h/v1?a=1#x", "/m:stream?alt=sse", "http://h/v1/m:stream?a=1&alt=sse"),
            ("http://h/v1/responses?a=1", "/id/cancel", "http://h/v1/responses/id/cancel?a=1"),
        ] {
            assert_eq!(below(base, path), whole);
        }
    }

    /// S3.8: nothing of an address that may be a secret is shown.
    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for (address, is_shown) in [
            ("http://bob:SECRET@h:1/v1?key=SECRET#SECRET", "http://h:1/v1"),
            ("http://SE@CRET@h/v1/a@b", "http://h/v1/a@b"),
            ("bob:SECRET@h/v1", "h/v1"),
            ("http//bob:SECRET@h/v1", "h/v1"),
            ("http://bob:SE/CRET@h/v1", "h/v1"),
            ("not an address", "not an address"),
        ] {
            assert_eq!(shown(address), is_shown);
        }
    }
}
