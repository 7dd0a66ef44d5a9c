//! The lines between two `---` at the head of a Markdown file: `key: value`, as many programs write them.

use std::collections::BTreeMap;

/// The keys at the head, and the text behind them.
pub(super) fn split(text: &str) -> (BTreeMap<String, String>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let none = (BTreeMap::new(), text);
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else { return none };
    let mut at = 0;
    let mut keys = BTreeMap::new();
    for line in rest.split_inclusive('\n') {
        at += line.len();
        let line = line.trim_end();
        if line == "---" {
            return (keys, &rest[at..]);
        }
        if let Some((key, value)) = line.split_once(':') {
            keys.insert(key.trim().to_owned(), unquoted(value.trim()).to_owned());
        }
    }
    // It was a rule and no head.
    none
}

/// The items of `a, b` or `[a, b]`.
pub(super) fn list(value: &str) -> Vec<String> {
    let value = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
    let items = value.split(',').map(|item| unquoted(item.trim()).to_owned());
    items.filter(|item| !item.is_empty()).collect()
}

fn unquoted(value: &str) -> &str {
    let inside = |quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_apart_from_the_text() {
        let (keys, body) = split("---\nname: a\ndescription: \"Reads: much\"\r\n---\nThe body\n---\n");
        assert_eq!(keys["description"], "Reads: much");
        assert_eq!((keys.len(), body), (2, "The body\n---\n"));
        assert_eq!(split("---\nno end\n"), (BTreeMap::new(), "---\nno end\n"));
        assert_eq!(split("plain"), (BTreeMap::new(), "plain"));
        assert_eq!(list("[read_file, 'search']"), ["read_file", "search"]);
        assert_eq!(list("a,b ,"), ["a", "b"]);
    }
}
