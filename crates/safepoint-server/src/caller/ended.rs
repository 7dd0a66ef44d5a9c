//! An item at rest with what is recorded of its turn, in the terms that every surface tells beside its own.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{Caller, Kept};
use crate::{
    answer::ItemAnswer,
    host::read::{self, TurnRead},
    problem::Answered,
};

/// How long it is waited for a stopped turn until it is known whether anything of it is alive.
const QUIET: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(20);

/// An item at rest, and its turn.
pub(crate) struct EndedItem {
    pub(crate) rest: ItemAnswer,
    turn: Option<TurnRead>,
}

impl Caller {
    /// What is recorded of an item at rest; if its turn was stopped, also what is alive, where that is known soon.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn ended(&self, kept: &Kept, rest: ItemAnswer) -> Answered<EndedItem> {
        let Some(name) = &rest.turn else { return Ok(EndedItem { rest, turn: None }) };
        let over = Instant::now() + QUIET;
        loop {
            let turns = read::turns(self.store(), kept.id()).await?;
            let found = turns.into_iter().find(|(number, _)| format!("turn-{number}") == *name);
            let turn = found.map(|(_, turn)| turn);
            let waits =
                turn.as_ref().is_some_and(|turn| turn.stop_code().is_some() && !turn.is_quiet_known());
            if !waits || Instant::now() >= over {
                return Ok(EndedItem { rest, turn });
            }
            sleep(LOOK).await;
        }
    }
}

impl EndedItem {
    /// The word for its outcome.
    pub(crate) fn outcome(&self) -> &'static str {
        self.rest.outcome.unwrap_or("not_known")
    }

    /// The code of what stopped its turn, if a stop did.
    pub(crate) fn stop_code(&self) -> Option<&str> {
        self.turn.as_ref().and_then(TurnRead::stop_code)
    }

    /// Code and message, if its turn failed.
    pub(crate) fn failure(&self) -> (&str, &str) {
        self.turn.as_ref().and_then(TurnRead::failure).unwrap_or(("not_known", "it is not recorded why"))
    }

    /// Session, item, turn and outcome, whether all is quiet, and where the receipt is.
    pub(crate) fn account(&self) -> Value {
        let Self { rest, turn } = self;
        let stop = turn.as_ref().map(TurnRead::stop);
        let url = rest.turn.as_ref().map(|turn| format!("/v1/sessions/{}/turns/{turn}", rest.session));
        json!({
            "session": rest.session, "item": rest.id, "turn": rest.turn, "outcome": rest.outcome,
            "quiet": stop.as_ref().and_then(|stop| stop.quiet),
            "survivors": stop.map(|stop| stop.survivors).unwrap_or_default(),
            "receipt": url,
        })
    }
}
