//! What was said in a session of the protocol: a client that lost a response, and comes back with `Last-Event-ID`, reads on behind it;
//! and which requests have yet to be answered.
//!
//! **Invariants**: an id is known in its session alone; what is kept of a session is bounded, and goes with it; no two requests that wait
//! for their answer have one id.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_core::future::BoxFuture;
use futures_util::stream;
use rmcp::{
    model::{JsonRpcMessage, RequestId},
    transport::streamable_http_server::session::{
        EventId, EventStore, EventStoreError, EventStream, ServerSseMessage,
    },
};
use tokio::sync::watch;

use super::asked::AskedIds;

/// How many streams of a session are kept, of those that are over and of the others: a request that was cancelled has no answer.
const MOST_STREAMS: usize = 64;
/// How many events of a stream are kept: its last ones.
const MOST_EVENTS: usize = 64;
/// The number of the stream that no request has.
const COMMON: u64 = 0;
/// How its name ends.
const COMMON_NAME: &str = ":common";

/// What was said in one session. Its readers end with it.
#[derive(Default)]
pub(super) struct SaidEvents(watch::Sender<SaidStreams>);

#[derive(Default)]
struct SaidStreams {
    by_number: BTreeMap<u64, SaidStream>,
    last: u64,
    asked: AskedIds,
}

/// A request with an id that no other one has that waits. Its id is free again if this is dropped before the request is handed on.
pub(super) struct AskedRequest {
    said: Arc<SaidEvents>,
    id: RequestId,
    is_handed_on: AtomicBool,
}

#[derive(Default)]
struct SaidStream {
    name: String,
    events: VecDeque<ServerSseMessage>,
    /// The last index; the first is 1, and 0 stands for the beginning.
    last: u64,
    /// Its request has its answer.
    is_over: bool,
}

/// Where a reader is: the stream, and the last event that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SaidAt {
    stream: u64,
    index: u64,
}

/// What is behind a place. Exhaustive: an event, nothing yet, or nothing any more.
enum Behind {
    Event(Box<ServerSseMessage>),
    Later,
    Never,
}

impl SaidAt {
    /// Of an id; one number alone is of the stream that no request has, whose beginning the transport names so.
    fn of(id: &str) -> Option<Self> {
        let (stream, index) = id.split_once('-').unwrap_or(("0", id));
        Some(Self { stream: stream.parse().ok()?, index: index.parse().ok()? })
    }

    fn id(self) -> EventId {
        format!("{}-{}", self.stream, self.index)
    }
}

impl SaidStreams {
    /// Keeps the event, and returns its id.
    fn keep(&mut self, name: &str, event: &ServerSseMessage) -> EventId {
        let number = self.number(name);
        let stream = self.by_number.entry(number).or_default();
        name.clone_into(&mut stream.name);
        stream.last += 1;
        let id = SaidAt { stream: number, index: stream.last }.id();
        let mut event = event.clone();
        event.event_id = Some(id.clone());
        let (answers, answered) = match event.message.as_deref() {
            Some(JsonRpcMessage::Response(answer)) => (true, Some(&answer.id)),
            Some(JsonRpcMessage::Error(answer)) => (true, answer.id.as_ref()),
            _ => (false, None),
        };
        if let Some(answered) = answered {
            self.asked.end(answered);
        }
        stream.is_over |= answers && number != COMMON;
        stream.events.push_back(event);
        if stream.events.len() > MOST_EVENTS {
            stream.events.pop_front();
        }
        for is_over in [true, false] {
            let such =
                || self.by_number.iter().filter(|(of, kept)| **of != COMMON && kept.is_over == is_over);
            let first = such().next().filter(|_| such().count() > MOST_STREAMS).map(|(of, _)| *of);
            first.and_then(|of| self.by_number.remove(&of));
        }
        id
    }

    fn number(&mut self, name: &str) -> u64 {
        if name.ends_with(COMMON_NAME) {
            return COMMON;
        }
        let known = self.by_number.iter().find(|(_, stream)| stream.name == name);
        known.map(|(number, _)| *number).unwrap_or_else(|| {
            self.last += 1;
            self.last
        })
    }

    fn knows(&self, at: SaidAt) -> bool {
        let last = self.by_number.get(&at.stream).map(|stream| stream.last);
        last.or((at.stream == COMMON).then_some(0)).is_some_and(|last| at.index <= last)
    }

    fn behind(&self, at: SaidAt) -> (SaidAt, Behind) {
        let Some(stream) = self.by_number.get(&at.stream) else {
            return (at, if at.stream == COMMON { Behind::Later } else { Behind::Never });
        };
        // Those that are kept are the last ones, so the distance from the end is the same in both counts.
        let ahead = usize::try_from(stream.last - at.index).unwrap_or(usize::MAX).min(stream.events.len());
        match stream.events.get(stream.events.len() - ahead) {
            Some(event) => {
                let index = stream.last + 1 - u64::try_from(ahead).unwrap_or_default();
                (SaidAt { index, ..at }, Behind::Event(Box::new(event.clone())))
            }
            None if stream.is_over => (at, Behind::Never),
            None => (at, Behind::Later),
        }
    }
}

impl SaidEvents {
    /// Whether a reader may read on behind this event.
    pub(super) fn knows(&self, last: &str) -> bool {
        SaidAt::of(last).is_some_and(|at| self.0.borrow().knows(at))
    }

    /// A request that begins; none where another one with its id waits, or was cancelled a short while ago.
    pub(super) fn begin(self: &Arc<Self>, id: RequestId) -> Option<AskedRequest> {
        let mut is_free = false;
        self.edit(|said| is_free = said.asked.begin(id.clone()));
        is_free.then(|| AskedRequest { said: Arc::clone(self), id, is_handed_on: AtomicBool::new(false) })
    }

    /// The client cancels the request of this id: it gets no answer, and what it began ends later.
    pub(super) fn cancel(&self, id: &RequestId) {
        self.edit(|said| said.asked.cancel(id));
    }

    /// Changes what no reader waits for.
    fn edit(&self, change: impl FnOnce(&mut SaidStreams)) {
        self.0.send_if_modified(|said| {
            change(said);
            false
        });
    }
}

impl AskedRequest {
    /// Its answer is to come: its id is free again with that.
    pub(super) fn handed_on(&self) {
        // Relaxed: it is read where this is dropped, which is behind every use.
        self.is_handed_on.store(true, Ordering::Relaxed);
    }
}

impl Drop for AskedRequest {
    fn drop(&mut self) {
        if !*self.is_handed_on.get_mut() {
            self.said.edit(|said| said.asked.end(&self.id));
        }
    }
}

/// The next event behind a place, and its own place; none: nothing comes any more.
async fn next(
    (mut said, at): (watch::Receiver<SaidStreams>, SaidAt),
) -> Option<(ServerSseMessage, (watch::Receiver<SaidStreams>, SaidAt))> {
    loop {
        let (at, behind) = said.borrow_and_update().behind(at);
        match behind {
            Behind::Event(event) => return Some((*event, (said, at))),
            Behind::Never => return None,
            // It fails where the session has ended.
            Behind::Later => said.changed().await.ok()?,
        }
    }
}

impl EventStore for SaidEvents {
    fn store_event<'a, 'b, 'c, 'all>(
        &'a self,
        stream: &'b str,
        event: &'c ServerSseMessage,
    ) -> BoxFuture<'all, Result<EventId, EventStoreError>>
    where
        'a: 'all,
        'b: 'all,
        'c: 'all,
        Self: 'all,
    {
        let mut id = EventId::new();
        self.0.send_modify(|said| id = said.keep(stream, event));
        Box::pin(async { Ok(id) })
    }

    fn replay_events_after<'a, 'b, 'all>(
        &'a self,
        last: &'b str,
    ) -> BoxFuture<'all, Result<EventStream, EventStoreError>>
    where
        'a: 'all,
        'b: 'all,
        Self: 'all,
    {
        let reader = self.0.subscribe();
        let at = SaidAt::of(last).filter(|at| reader.borrow().knows(*at));
        Box::pin(async move {
            let at = at.ok_or("the event is not known any more")?;
            Ok(Box::pin(stream::unfold((reader, at), next)) as EventStream)
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use rmcp::model::ServerJsonRpcMessage;
    use serde_json::json;

    use super::{super::asked::MOST_CANCELLED, *};

    fn message(value: serde_json::Value) -> ServerSseMessage {
        ServerSseMessage::from_message(serde_json::from_value::<ServerJsonRpcMessage>(value).unwrap())
    }

    fn ping(id: u64) -> ServerSseMessage {
        message(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    }

    fn answer() -> ServerSseMessage {
        message(json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
    }

    async fn ids(said: &SaidEvents, behind: &str) -> Vec<String> {
        let read = said.replay_events_after(behind).await.unwrap();
        read.map(|event| event.event_id.unwrap()).collect().await
    }

    /// S13.47: a reader continues behind the event that it names, to the answer of its request, and reads of no other.
    #[tokio::test]
    async fn a_stream_is_read_on_behind_an_event() {
        let said = SaidEvents::default();
        for stream in ["one", "two"] {
            for event in [ping(1), ping(2), answer()] {
                said.store_event(stream, &event).await.unwrap();
            }
        }
        assert_eq!(ids(&said, "2-0").await, ["2-1", "2-2", "2-3"]);
        assert_eq!(ids(&said, "1-1").await, ["1-2", "1-3"]);
        assert_eq!(ids(&said, "1-3").await, [""; 0]);
        for unknown in ["1-4", "3-1", "x", "1-x", ""] {
            assert!(said.replay_events_after(unknown).await.is_err(), "{unknown}");
        }
    }

    /// S13.47: what is still to come is read as it comes, also of the stream that no request has, and readers end with the session.
    #[tokio::test]
    async fn a_reader_waits_for_what_comes() {
        let said = SaidEvents::default();
        let mut common = said.replay_events_after("0").await.unwrap();
        let first = said.store_event("one", &ping(1)).await.unwrap();
        let mut read = said.replay_events_after(&first).await.unwrap();
        let (second, last) =
            tokio::join!(read.next(), async { said.store_event("one", &ping(2)).await.unwrap() });
        assert_eq!(second.unwrap().event_id, Some(last));
        said.store_event("of:common", &answer()).await.unwrap();
        assert_eq!(common.next().await.unwrap().event_id.as_deref(), Some("0-1"));
        drop(said);
        assert!(common.next().await.is_none() && read.next().await.is_none());
    }

    /// S13.53: an id is free while no request waits under it: with its answer, with a request that was not handed on, and, once enough
    /// others came, after a cancel.
    #[tokio::test]
    async fn an_id_is_free_while_no_request_waits_under_it() {
        let said = Arc::new(SaidEvents::default());
        let of = |id: i64| RequestId::Number(id);
        let ask = |id: i64| said.begin(of(id)).map(|asked| asked.handed_on());
        assert!(ask(1).is_some() && ask(1).is_none());
        said.store_event("two", &ping(1)).await.unwrap();
        assert!(ask(1).is_none(), "a request of the server has the id, and no answer");
        said.store_event("one", &answer()).await.unwrap();
        assert!(ask(1).is_some(), "it was answered");
        drop(said.begin(of(2)));
        assert!(ask(2).is_some(), "it was not handed on");
        said.cancel(&of(3));
        assert!(ask(3).is_some(), "there was nothing to cancel");
        for id in (3..).take(MOST_CANCELLED) {
            assert!(id == 3 || ask(id).is_some());
            said.cancel(&of(id));
            assert!(ask(3).is_none(), "what the first one began may end later");
        }
        assert!(ask(0).is_some());
        said.cancel(&of(0));
        assert!(ask(3).is_some());
        assert!(said.begin(RequestId::String("3".into())).is_some(), "a text is no number");
    }

    /// S13.47: what is kept is bounded: the last events of a stream, the last streams that are over, and the last that are not.
    #[tokio::test]
    async fn what_is_kept_is_bounded() {
        let said = SaidEvents::default();
        for id in 0..=MOST_EVENTS {
            said.store_event("runs", &ping(id.try_into().unwrap())).await.unwrap();
        }
        for number in 0..=MOST_STREAMS {
            said.store_event(&number.to_string(), &answer()).await.unwrap();
        }
        assert!(said.replay_events_after("2-0").await.is_err(), "it was over, and the first");
        assert_eq!(ids(&said, "3-0").await, ["3-1"]);
        let mut runs = said.replay_events_after("1-0").await.unwrap();
        assert_eq!(runs.next().await.unwrap().event_id.as_deref(), Some("1-2"), "the first one is gone");
        for number in 0..MOST_STREAMS {
            said.store_event(&format!("runs {number}"), &ping(1)).await.unwrap();
        }
        assert!(said.replay_events_after("1-0").await.is_err(), "it was the first that is not over");
        assert_eq!(ids(&said, "3-0").await, ["3-1"]);
    }
}
