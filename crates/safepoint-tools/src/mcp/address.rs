//! Addresses in what is said to people and models: nothing of them that may be a secret.

/// A text in which each address is without a name and a password, a query, and a fragment.
pub(super) fn scrubbed(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let from = rest[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
        let from = from.map_or(0, |before| before + rest[before..].chars().next().map_or(1, char::len_utf8));
        let is_end = |c: char| c.is_whitespace() || c.is_control() || "\"<>`)".contains(c);
        let to = rest[at..].find(is_end).map_or(rest.len(), |end| at + end);
        shown.push_str(&rest[..from]);
        shown.push_str(&one(&rest[from..to]));
        rest = &rest[to..];
    }
    shown.push_str(rest);
    shown
}

/// One address.
pub(super) fn one(address: &str) -> String {
    let place = address.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = place.split_once("://") else {
        return place.rsplit('@').next().unwrap_or_default().to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}://{}{path}", authority.rsplit('@').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.8: what may be a secret of an address is in no text.
    #[test]
    fn an_address_in_a_text_is_without_its_secrets() {
        for (text, shown) in [
            ("for url (http://b:S@h:1/mcp?key=S): refused", "for url (http://h:1/mcp): refused"),
            ("läuft an http://h/mcp#S und https://S@g/", "läuft an http://h/mcp und https://g/"),
            ("über«http://S@h»", "über«http://h»"),
            ("nothing here", "nothing here"),
            ("://", "://"),
        ] {
            assert_eq!(scrubbed(text), shown);
        }
    }
}
