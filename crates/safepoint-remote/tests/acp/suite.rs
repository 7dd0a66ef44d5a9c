//! What every backend must do, and whether a stop of an ACP agent is as hard as it is declared: by the agents' own account.

use std::{fs, path::Path, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, ready};
use safepoint::Agent;
use safepoint_testkit::{
    acp::{AcpManners, work},
    backend_suite::{self, Account, Measured, Probe, Subject, table},
};

use super::support::{AMPLE, Place};

/// The account of the agents of one place.
struct Agents {
    place: Place,
}

impl Probe for Agents {
    fn look(&self) -> BoxFuture<'_, Account> {
        Box::pin(ready(work(&self.place.log())))
    }

    fn finish(&self) {
        fs::write(self.place.folder.path().join("until"), "").unwrap();
    }
}

/// Agents that take whatever they are asked as this word, and have this long for a stop.
fn agents(word: &str, within: Duration) -> Subject {
    let place = Place::new();
    let until = Some(place.folder.path().join("until"));
    let manners = AcpManners { word: Some(word.into()), until, ..AcpManners::default() };
    let acp = place.agent(manners).stop_within(within);
    Subject { backend: Arc::new(Agent::remote(acp).build()), probe: Arc::new(Agents { place }) }
}

/// Every fact; the grade with ample time, so that the row does not hang on the machine.
async fn measured(name: &str, word: &str) -> Measured {
    if let Err(broken) = backend_suite::all(&|| agents(word, Duration::from_millis(800))).await {
        panic!("{name}: {broken}");
    }
    graded(name, word).await
}

async fn graded(name: &str, word: &str) -> Measured {
    match backend_suite::grade(&|| agents(word, AMPLE)).await {
        Ok(measured) => Measured { name: name.into(), ..measured },
        Err(broken) => panic!("{name}: {broken}"),
    }
}

/// S10.1, S10.2 / T3, vicoa-ai/vicoa PR#41; omnigent-ai/omnigent#1748: the suite is green for agents that hear a stop and
/// for those that do not, and the table in docs/backends.md says what it measured.
#[tokio::test]
async fn the_table_says_what_was_measured() {
    let rows = [
        measured("an ACP agent that confirms its end", "work").await,
        measured("‥ that hears no `session/cancel`", "deaf").await,
        graded("‥ that says `end_turn` to a cancel", "sly").await,
        graded("‥ that answers a cancel with an error", "fail").await,
        graded("‥ that answers when its input ends", "late").await,
        graded("‥ with a grandchild in a session of its own", "tree").await,
    ];
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/backends.md");
    if let Err(differs) = table::check(&document, "ACP agents", &rows) {
        panic!("{differs}");
    }
}
