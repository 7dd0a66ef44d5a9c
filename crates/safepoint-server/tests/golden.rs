//! What the server stores and says, as it was written before: the file of tokens, and the document of the API.
//! An `AuditLine`, the `Claims` of a provider's token, and a setup with each `EarlierMessage` have their golden lines beside them.

use std::fs;

use safepoint_golden::Golden;
use safepoint_server::{TokenFile, TokenRow, document};

const FILE: &str = r#"
[[token]]
id = "0a0b0c0d0e0f"
name = "ci"
scopes = ["read", "talk"]
agents = ["helper"]
expires = "2026-12-01T00:00:00Z"
sha256 = "00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff"

[[token]]
id = "101112131415"
name = "anna"
scopes = ["read", "talk", "approve", "stop", "admin"]
see_all = true
sha256 = "FF00FF00FF00FF00FF00FF00FF00FF00FF00FF00FF00FF00FF00FF00FF00FF00"

[[token]]
id = "202122232425"
name = "gone"
scopes = []
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
"#;

/// S13.10: the file (`Table`) is read as it was written, row by row; each of its rows is a [`TokenRow`]. Digits are written in one case.
#[test]
fn the_file_of_tokens_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.toml");
    fs::write(&path, FILE).unwrap();
    let file = TokenFile::new(&path);
    let rows: Vec<TokenRow> = file.rows().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(file.revoke("202122232425").unwrap());
    let golden = Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/tokens.txt");
    golden.lines("tokens", fs::read_to_string(&path).unwrap().lines()).check();
}

/// The document has the fields of each body (`SessionAsk`, `ItemAsk`, `PolicyWord`, `OrWord`, `StopAsk`, `What`, `ReachWord`,
/// `DecisionAsk`, `DecisionWord`, `AccessScope`) and of each answer (`AgentAnswer`, `SessionAnswer`, `SessionState`, `OpenAt`,
/// `RunningTurn`, `ListPage`, `ItemAnswer`, `ItemState`, `StopAnswer`, `StopState`, `TurnAnswer`, `ApprovalAnswer`,
/// `DecisionAnswer`, `StepAnswer`, `DoneAnswer`). An `Unnumbered` is a line of `docs/schema/event.json` without its `seq`. What the store keeps with a session is a `Setup`, tested where it is.
#[test]
fn the_document_of_the_api_is_as_it_was() {
    let text = serde_json::to_string_pretty(&document()).unwrap();
    let golden = Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/openapi.txt");
    golden.lines("openapi", text.lines()).check();
}
