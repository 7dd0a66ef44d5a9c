//! What brings sessions to the servers of one store, as it is named.

use serde::Deserialize;
use url::Url;

/// What is said of a word that names none.
const KNOWN: &str = "write `here` (each server looks itself), `graphile` (a job queue in the database) or `restate=URL` (the ingress of \
     that engine)";

/// A placement. Exhaustive: each server looks itself, or a queue stands between them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum PlacementChoice {
    Here,
    Graphile,
    Restate(Url),
}

/// Reads a placement of an argument. What cannot be read is not repeated: it may have a password.
pub(crate) fn parse(text: &str) -> Result<PlacementChoice, String> {
    match (text, text.strip_prefix("restate=")) {
        ("here", _) => Ok(PlacementChoice::Here),
        ("graphile", _) => Ok(PlacementChoice::Graphile),
        (_, Some(ingress)) => match Url::parse(ingress) {
            Ok(url) if is_ingress(&url) => Ok(PlacementChoice::Restate(url)),
            Ok(_) | Err(_) => Err("the ingress is an address as http://HOST:8080, without a user".into()),
        },
        (_, None) => Err(format!("no such placement: {KNOWN}")),
    }
}

fn is_ingress(url: &Url) -> bool {
    let is_plain = url.username().is_empty() && url.password().is_none();
    matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain
}

impl TryFrom<String> for PlacementChoice {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7.70: what names no placement is refused with those that there are, and shows no password.
    #[test]
    fn a_placement_is_one_of_three() {
        assert_eq!(parse("here"), Ok(PlacementChoice::Here));
        assert_eq!(parse("graphile"), Ok(PlacementChoice::Graphile));
        let ingress = parse("restate=http://engine:8080").unwrap();
        assert!(matches!(ingress, PlacementChoice::Restate(url) if url.as_str() == "http://engine:8080/"));
        for wrong in ["", "there", "Here", "restate", "graphile=x"] {
            let why = parse(wrong).unwrap_err();
            assert!(["`here`", "`graphile`", "`restate=URL`"].iter().all(|word| why.contains(word)), "{why}");
        }
        for wrong in
            ["restate=", "restate=engine", "restate=ftp://engine", "restate=http://ann:hunter2@engine"]
        {
            let why = parse(wrong).unwrap_err();
            assert!(why.contains("http://HOST:8080") && !why.contains("hunter2"), "{why}");
        }
    }
}
