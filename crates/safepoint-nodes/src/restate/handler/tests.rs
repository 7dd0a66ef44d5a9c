//! What the engine keeps of a wake: its golden file.

use safepoint_golden::Golden;

use super::*;

/// S7.72: nodes of two releases stand behind one address, so a [`WakeMessage`] and an [`OwnResult`] stay as they are.
#[test]
fn the_form_of_a_wake_is_kept() {
    let message = |pool: &str, priority, tries| WakeMessage { pool: pool.into(), priority, tries };
    Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/restate.txt")
        .json("wake", [message("", 0, 0), message("helper", -1, 2)])
        .json("result", [OwnResult::InHand, OwnResult::Full, OwnResult::OtherPool])
        .check();
    let WakeMessage { pool, priority, tries } = serde_json::from_str("{}").unwrap();
    assert_eq!((pool.as_str(), priority, tries), ("", 0, 0));
}

/// S7.72: a wake is handed over, or it is said why not.
#[tokio::test(start_paused = true)]
async fn a_wake_that_cannot_be_handed_over_is_done_with() {
    let session = SafepointSession::new(Arc::default(), vec!["helper".to_owned()]);
    let of = |pool: &str| WakeMessage { pool: pool.to_owned(), ..WakeMessage::default() };
    assert_eq!(session.hand_over("a", of("gpu")).await, OwnResult::OtherPool);
    let began = tokio::time::Instant::now();
    assert_eq!(session.hand_over("a", of("helper")).await, OwnResult::Full);
    assert_eq!(began.elapsed(), PATIENCE);
}
