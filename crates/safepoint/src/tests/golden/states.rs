//! Runs as values: what programs keep in databases of theirs, and the records in logs of theirs.

use std::{collections::BTreeMap, sync::Arc};

use super::{facts::attempt, golden, messages::histories, receipts::plain_receipt, samples::plain_question};
use crate::{
    Receipt, approval::OnUnknownEffect, definition::identity::AgentIdentity, event::Fact, ids::Path,
    log::RunRecord, receipt::Ending, run::state::RunState,
};

fn records() -> Vec<RunRecord> {
    let receipt = Receipt { ending: Ending::Suspended, ..plain_receipt() };
    let facts = [
        attempt(histories().pop(), OnUnknownEffect::Tell, None),
        Fact::ApprovalRequested(plain_question()),
        Fact::Settled { receipt: Arc::new(receipt), error: None },
    ];
    facts.map(|fact| RunRecord { path: Path::default(), fact: Arc::new(fact) }).into()
}

/// S7.18, S7.20: a `RunState` is written as a `StoredRunState`, of which a `VersionOnly` is read first, and both it and the lines of a log are read by later releases.
#[test]
fn every_form_of_a_kept_run() {
    let tools = BTreeMap::from([("shell".to_owned(), "sha256:ab".to_owned())]);
    let agent = AgentIdentity { agent: "sha256:cd".to_owned(), tools };
    let state = RunState::of("run_1".into(), agent, records()).expect("it is whole");
    golden("states").json("run record", records()).json("run state", [state]).check();
}
