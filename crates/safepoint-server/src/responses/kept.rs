//! A response that is kept: found by its id, shown as it is now, and cancelled.

use std::time::Duration;

use axum::{http::StatusCode, response::Response};
use serde_json::Value;
use tokio::time::Instant;

use safepoint::{event::ErrorReport, session::QueueAfterStop};

use super::{
    event::ResponseStatus,
    fold::Fold,
    id::{ResponseId, ResponsePart},
    object::{KeptHead, ResponseError, ResponseHead},
    offers, stream,
};
use crate::{
    answer::{CRASHED, ItemAnswer, ItemState, crashed_words},
    ask::StopAsk,
    caller::{Caller, Kept, items::view, stops::StopWait},
    follow::{asked_by, recorded},
    host::read,
    load::{Load, ReaderPlace},
    problem::{Answered, Problem},
    routes::{Call, json},
};

/// How long a cancel waits until the turn has settled.
const CANCEL_WITHIN: Duration = Duration::from_secs(20);

/// A response that is kept.
#[derive(Clone)]
pub(super) struct KeptResponse {
    pub(super) by: Caller,
    pub(super) kept: Kept,
    /// The item of its turn.
    pub(super) number: u64,
    pub(super) part: ResponsePart,
    pub(super) head: ResponseHead,
}

impl KeptResponse {
    /// The response of this id, if the caller sees it.
    ///
    /// # Errors
    /// `no_such_response`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn find(by: &Caller, id: &str) -> Answered<Self> {
        let no_such = || Problem::no_such("response");
        let id = ResponseId::parse(id).ok_or_else(no_such)?;
        let kept = by
            .session(&id.session)
            .await
            .map_err(|problem| if problem.code() == "no_such_session" { no_such() } else { problem })?;
        if !offers(by, &kept.setup.agent) {
            return Err(no_such());
        }
        let number = match &id.part {
            ResponsePart::Item(number) => {
                let last = by.store().notice(kept.id()).await?.items;
                Some(*number).filter(|number| *number <= last)
            }
            ResponsePart::After(approval) => asked_by(by.store(), kept.id(), approval).await?,
        };
        Self::of(by, kept, (id, number.ok_or_else(no_such)?)).await
    }

    /// The response of this id, whose turn has this item.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn of(by: &Caller, kept: Kept, (id, number): (ResponseId, u64)) -> Answered<Self> {
        let rows = by.store().inbox(kept.id()).await?;
        let pushed = rows.iter().find(|row| row.number == number).map(|row| row.at);
        let turns = read::turns(by.store(), kept.id()).await?;
        let begun = read::turn_of(&turns, number).and_then(|(_, turn)| turn.begun);
        let previous = match id.part {
            ResponsePart::After(_) => Some(number),
            ResponsePart::Item(_) => {
                turns.values().flat_map(|turn| &turn.items).copied().filter(|item| *item < number).max()
            }
        };
        let part = id.part.clone();
        let head = ResponseHead {
            id: id.to_string(),
            agent: kept.setup.agent.clone(),
            created: begun.or(pushed).unwrap_or(kept.row.created).as_second(),
            kept: Some(KeptHead { session: id.session, item: number, previous }),
        };
        Ok(Self { by: by.clone(), kept, number, part, head })
    }

    /// Reads it for a client that has its events up to the number `after`.
    pub(super) fn fold(&self, after: Option<u64>) -> Fold {
        Fold::of(self.kept.id().as_str(), &self.head.agent, self.part.clone(), after)
    }

    /// What is recorded of it by now.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn folded(&self) -> Answered<Fold> {
        let item = self.item().await?;
        let mut fold = self.fold(None);
        let all = recorded(self.by.store(), self.kept.id(), self.number).await?;
        for event in &all {
            drop(fold.step(event));
        }
        if item.state == ItemState::Rest {
            drop(fold.rest(item.outcome));
        }
        Ok(fold)
    }

    async fn item(&self) -> Answered<ItemAnswer> {
        view(&self.by.host, self.kept.id(), self.number).await
    }

    /// The response as it is now.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn object(&self) -> Answered<Value> {
        self.shown(&self.folded().await?).await
    }

    /// The response as its events say.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn shown(&self, fold: &Fold) -> Answered<Value> {
        let error = match fold.facts.status {
            ResponseStatus::Failed if fold.facts.outcome.as_deref() == Some(CRASHED) => {
                let message = crashed_words(self.kept.id());
                Some(ResponseError { code: CRASHED.to_owned(), message })
            }
            ResponseStatus::Failed => self.error().await?,
            _ => None,
        };
        Ok(self.head.object(fold, error.as_ref()))
    }

    async fn error(&self) -> Answered<Option<ResponseError>> {
        let turns = read::turns(self.by.store(), self.kept.id()).await?;
        let error = read::turn_of(&turns, self.number).and_then(|(_, turn)| turn.error.clone());
        Ok(error.map(|ErrorReport { code, message, .. }| ResponseError { code, message }))
    }

    /// The response once it is over; as it is when the server ends before that.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Cancel safety
    /// Nothing is lost: the turn continues.
    pub(super) async fn over(&self) -> Answered<Value> {
        loop {
            let item = self.by.rested_or_left(&self.kept, self.number).await?;
            let fold = self.folded().await?;
            if fold.facts.status.is_over() || item.state != ItemState::Rest {
                return self.shown(&fold).await;
            }
        }
    }
}

pub(super) async fn retrieve(call: Call) -> Answered<Response> {
    let response = KeptResponse::find(&call.by, call.param("response")).await?;
    let after = call.query::<u64>("starting_after")?;
    if call.query::<bool>("stream")?.unwrap_or_default() {
        let place = ReaderPlace::take(&call.by.load, call.by.who.name())?;
        return stream::response(place, response, after).await;
    }
    json(StatusCode::OK, &response.object().await?)
}

pub(super) async fn cancel(call: Call) -> Answered<Response> {
    let over = Instant::now() + CANCEL_WITHIN;
    let response = KeptResponse::find(&call.by, call.param("response")).await?;
    let fold = response.folded().await?;
    let (by, kept) = (&call.by, &response.kept);
    // Its turn may run again.
    let may_stop = by.may_stop(kept, &response.item().await?);
    match fold.facts.status {
        ResponseStatus::Cancelled if !may_stop => {
            return json(StatusCode::OK, &response.shown(&fold).await?);
        }
        ResponseStatus::Failed if !may_stop => return Err(too_late(&fold)),
        ResponseStatus::Completed if !fold.is_asked() => return Err(too_late(&fold)),
        _ => {}
    }
    Load::count(&by.load.stops);
    // At once: at its next safe point it would often be completed.
    let request = StopAsk { mode: Some("now".to_owned()), ..StopAsk::default() }.request(by.who.name())?;
    match by.stop_item(kept, response.number, request, QueueAfterStop::Continues).await {
        Ok(stopped) => {
            let wait = (StopWait::Settled, over);
            drop(by.item_stopped(kept, response.number, stopped, wait).await?);
        }
        // It was over before the stop; how, is seen below.
        Err(problem) if problem.code() == "too_late" => {}
        Err(problem) => return Err(problem),
    }
    let mut fold = response.folded().await?;
    match fold.facts.status {
        ResponseStatus::Completed | ResponseStatus::Failed if !fold.is_asked() => {
            return Err(too_late(&fold));
        }
        ResponseStatus::Cancelled => {}
        _ => fold.facts.is_stop_requested = true,
    }
    json(StatusCode::OK, &response.shown(&fold).await?)
}

/// It was over before the cancel.
fn too_late(fold: &Fold) -> Problem {
    let outcome = fold.facts.status.as_str();
    let detail = format!("the response is {outcome}, and cannot be cancelled");
    Problem::new(StatusCode::BAD_REQUEST, "too_late", detail).with("outcome", outcome)
}
