//! The golden file of logins. What authorization servers send (`Tokens`, `ResourceMetadata`, `AuthorityMetadata`) is theirs: the
//! standards say it, and `tests/cli/login.rs` has a server that sends it.

use super::*;
use crate::tests::golden::{at, golden};

fn full() -> Login {
    Login {
        server: "https://a.example/mcp".into(),
        token_endpoint: "https://as.example/token".into(),
        client_id: "client-1".into(),
        resource: "https://a.example/mcp".into(),
        access_token: "access".into(),
        refresh_token: Some("refresh".into()),
        expires_at: Some(at(0)),
    }
}

/// S12.63: what a release has written, each later one reads.
#[test]
fn a_login_is_kept_in_one_form() {
    let least = Login { refresh_token: None, expires_at: None, ..full() };
    golden("logins").json("login", [full(), least]).check();
}

fn given(json: &str) -> Tokens {
    serde_json::from_str(json).unwrap()
}

/// S12.63: an answer without a new refresh token leaves the old one, and a token that is no bearer token is none.
#[test]
fn what_is_given_takes_the_place_of_what_was_there() {
    let login = full().with(given(r#"{"access_token":"new","token_type":"bearer"}"#)).unwrap();
    assert_eq!((&*login.access_token, login.refresh_token.as_deref()), ("new", Some("refresh")));
    assert!(login.is_fresh(), "one without an end is not renewed");
    let soon = r#"{"access_token":"new","token_type":"Bearer","expires_in":30,"refresh_token":"other"}"#;
    let login = full().with(given(soon)).unwrap();
    assert!(!login.is_fresh() && login.refresh_token.as_deref() == Some("other"));
    assert!(full().with(given(r#"{"access_token":"new","token_type":"mac"}"#)).is_err());
}
