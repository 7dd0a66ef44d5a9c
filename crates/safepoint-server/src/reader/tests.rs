//! A reader of one item.

use std::iter;

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, History, Model,
    model::{Conversation, Delta, DeltaStream, Finish, ModelSpec},
    raw::store::NewSession,
    session::Policy,
    store::{MemoryStore, Store as _},
};
use tokio::sync::watch;

use super::*;
use crate::{
    access::{AccessScope, Principal},
    caller::sessions::SessionMake,
    host::Host,
};

/// A model that says a word once it may.
struct Gated(watch::Receiver<bool>);

impl Model for Gated {
    fn name(&self) -> &'static str {
        "gated"
    }

    fn open(&self, _spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(Self(self.0.clone()))
    }
}

impl Conversation for Gated {
    fn stream(&mut self, _history: &History) -> DeltaStream {
        let mut opens = self.0.clone();
        let word = async move { opens.wait_for(|is_open| *is_open).await.map(drop).unwrap_or_default() };
        let says = [Delta::Sent, Delta::Text("word".into()), Delta::Ended(Finish::Natural)].map(Ok);
        stream::once(word).flat_map(move |()| stream::iter(says.clone())).boxed()
    }
}

fn says(text: &str) -> ItemPush {
    ItemPush { text: text.to_owned(), policy: Policy::Enqueue, key: None }
}

/// S13.29: an item that is to be read is pushed only with its reader.
#[tokio::test]
async fn without_a_reader_nothing_is_pushed() {
    let store = Arc::new(MemoryStore::default());
    let host = Host::builder(Arc::clone(&store) as Arc<_>).start().await.unwrap();
    let who = Principal::new("ci", AccessScope::ALL);
    let by = Caller { host: Arc::clone(&host.inner), load: Arc::default(), who, trace: None };
    let row = store.create(NewSession::of(SessionId::fresh())).await.unwrap();
    let kept = Kept { setup: Setup::of(&row), row };
    let item = says("go");
    let places: Vec<_> = iter::from_fn(|| ReaderPlace::take(&by.load, "ci").ok()).collect();
    let refused = Reader::push(&by, &kept, &Owner::Elsewhere, &item).await.err().unwrap();
    assert_eq!(refused.code(), "too_many_readers");
    assert!(store.inbox(kept.id()).await.unwrap().is_empty());
    drop(places);
    let (pushed, _reader) = Reader::push(&by, &kept, &Owner::Elsewhere, &item).await.unwrap();
    assert_eq!(pushed.number, 1);
    host.drain(Duration::ZERO).await;
}

/// S13.35: an item that is at rest before its reader reads the end of the turn before it still has all of its own turn.
#[tokio::test]
async fn a_reader_that_is_late_has_the_whole_turn_of_its_item() {
    let (opens, is_open) = watch::channel(false);
    let agent = Agent::builder(Gated(is_open)).build();
    let host = Host::builder(Arc::new(MemoryStore::default())).agent("helper", agent).start().await.unwrap();
    let who = Principal::new("ci", AccessScope::ALL);
    let by = Caller { host: Arc::clone(&host.inner), load: Arc::default(), who, trace: None };
    let make = SessionMake { item: Some(says("first")), ..SessionMake::default() };
    let (kept, _) = by.make(make).await.unwrap();
    let owner = by.owner(&kept).await.unwrap();
    let (pushed, mut reader) = Reader::push(&by, &kept, &owner, &says("second")).await.unwrap();
    opens.send_replace(true);
    // One that reads all at once: when it has ended, both turns are over, and the late one has read nothing yet.
    let row = &kept.row;
    let mut prompt = Reader::start(&by, row, None).await.unwrap().until(Until::Item(pushed.number));
    let read = async { while prompt.next().await.is_some() {} };
    timeout(Duration::from_secs(20), read).await.expect("both turns end");
    let mut kinds = Vec::new();
    while let Some(frames) = reader.next().await {
        let of = |frame: &Frame| frame.event().map(|(kind, _)| kind.to_owned());
        kinds.extend(frames.iter().filter_map(of));
    }
    assert!(kinds.iter().any(|kind| kind == "turn_started"), "{kinds:?}");
    assert_eq!(kinds.iter().rev().take(2).collect::<Vec<_>>(), ["end", "item"], "{kinds:?}");
    host.drain(Duration::ZERO).await;
}
