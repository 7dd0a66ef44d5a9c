//! What a model says passes the hooks before it is shown, recorded or sent.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, History, Model, Outcome, StopRequest,
    event::EventKind,
    history::Message,
    hook::{self, Hooks, TextFilter, TextKind},
    message::{Block, ProviderBlock, ProviderPart, Reasoning, ResultStatus},
    model::{Conversation, Delta, DeltaStream, Finish, ModelSpec},
};
use serde_json::json;

use crate::{
    hook_changes::{SECRET, Spy, acted, seen},
    world::{Reply, agent, say, until},
};

fn text(pieces: &[&str]) -> Reply {
    let mut reply: Reply = vec![Ok(Delta::Sent)];
    reply.extend(pieces.iter().map(|piece| Ok(Delta::Text((*piece).into()))));
    reply.push(Ok(Delta::Ended(Finish::Natural)));
    reply
}

/// S2.20: what a filter gives is what is shown, recorded, sent and answered, however the pieces fall.
#[tokio::test(start_paused = true)]
async fn text_is_filtered_before_it_is_shown() {
    let whole = format!("one\nthe card is {SECRET}.\ntwo {SECRET}");
    for size in 1..whole.len() {
        let pieces: Vec<&str> =
            (0..whole.len()).step_by(size).map(|at| &whole[at..whole.len().min(at + size)]).collect();
        let spy = Spy::new([text(&pieces), text(&["nothing of it"])]);
        let filter = hook::on_text("no-cards", |line| line.replace(SECRET, "[card]"));
        let agent = spy.agent().hooks(filter).build();
        let handle = agent.run("go").detach();
        let (facts, all) = seen(&handle).await;
        let outcome = handle.done().await;
        assert_eq!(outcome.answer(), Some("one\nthe card is [card].\ntwo [card]"));
        // A time may have digits of it.
        assert!(!all.contains("4111-") && !all.contains("-1111"), "{all}");
        assert_eq!(acted(&facts), ["no-cards text_changed"]);
        let handle = agent.run_on(outcome.history().clone(), "and?").detach();
        assert_eq!(acted(&seen(&handle).await.0), Vec::<String>::new(), "nothing was changed");
    }
}

/// S2.20, S4.24: what a filter keeps stands before what the provider did next, as the model said it.
#[tokio::test]
async fn what_a_filter_keeps_stands_before_what_the_provider_did_next() {
    let part = ProviderPart::Result {
        id: "s1".into(),
        tool: "web_search".into(),
        status: ResultStatus::Ok,
        text: "found".into(),
    };
    let mut reply = text(&["I look it up: ", "it is there."]);
    reply.insert(2, Ok(Delta::Provider(Box::new(ProviderBlock::new("test", part, json!({}))))));
    let agent = Spy::new([reply]).agent().hooks(hook::on_text("lines", ToOwned::to_owned)).build();
    let outcome = agent.run("go").await;
    let Some(Message::Assistant(message)) = outcome.history().entries().last().map(|last| &**last) else {
        panic!("{:?}", outcome.history())
    };
    let is_text: Vec<bool> = message.blocks.iter().map(|block| matches!(block, Block::Text { .. })).collect();
    assert_eq!(is_text, [true, false, true], "{:?}", message.blocks);
}

/// S2.20, S2.2: of a message that a stop cuts, only what a filter has given is kept.
#[tokio::test(start_paused = true)]
async fn what_a_filter_keeps_is_not_in_a_cut_message() {
    let mut begun = text(&["shown\nkept"]);
    begun.pop();
    #[derive(Clone)]
    struct Hangs(Reply);
    impl Model for Hangs {
        fn name(&self) -> &str {
            "hangs"
        }
        fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
            Box::new(self.clone())
        }
    }
    impl Conversation for Hangs {
        fn stream(&mut self, _: &History) -> DeltaStream {
            stream::iter(std::mem::take(&mut self.0)).chain(stream::pending()).boxed()
        }
    }
    let filter = hook::on_text("lines", ToOwned::to_owned);
    let handle = Agent::builder(Hangs(begun)).hooks(filter).build().run("go").detach();
    until(&handle, |kind| matches!(kind, EventKind::Text(_))).await;
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.partial_text(), "shown\n");
}

/// S2.20: reasoning that a filter has changed is recorded without its provider's seal; other reasoning keeps it.
#[tokio::test(start_paused = true)]
async fn changed_reasoning_has_no_seal() {
    struct Reasons;
    struct Replaces;
    impl Hooks for Reasons {
        fn text_filter(&self, kind: TextKind) -> Option<Box<dyn TextFilter>> {
            (kind == TextKind::Reasoning).then(|| -> Box<dyn TextFilter> { Box::new(Replaces) })
        }
    }
    impl TextFilter for Replaces {
        fn push(&mut self, piece: &str) -> String {
            piece.replace(SECRET, "[card]")
        }
    }
    let seal = |text: &str| [Ok(Delta::Reasoning(text.into())), Ok(Delta::ReasoningSeal(json!("seal")))];
    let mut reply: Reply = vec![Ok(Delta::Sent)];
    reply.extend(seal("it is secret: 4111-1111"));
    reply.extend([Ok(Delta::Text("so".into()))]);
    reply.extend(seal("it is not"));
    reply.extend([Ok(Delta::Text(" it is".into())), Ok(Delta::Ended(Finish::Natural))]);
    let outcome = Spy::new([reply]).agent().hooks(Reasons).build().run("go").await;
    let entry = outcome.history().entries().last().cloned().unwrap();
    let Message::Assistant(message) = &*entry else { panic!("{entry:?}") };
    let reasoning: Vec<&Reasoning> = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Reasoning(reasoning) => Some(reasoning),
            _ => None,
        })
        .collect();
    let found: Vec<(&str, bool)> = reasoning.iter().map(|it| (it.text.as_str(), it.seal.is_some())).collect();
    assert_eq!(found, [("it is secret: [card]", false), ("it is not", true)]);
}

/// S2.16, S2.20: a filter that panics, as it is made or used, fails the run with `callback`.
#[tokio::test(start_paused = true)]
async fn a_filter_that_panics_fails_the_run() {
    struct Panics(bool);
    struct Filter;
    impl Hooks for Panics {
        fn text_filter(&self, _: TextKind) -> Option<Box<dyn TextFilter>> {
            assert!(!self.0, "as it is made");
            Some(Box::new(Filter))
        }
    }
    impl TextFilter for Filter {
        fn push(&mut self, _: &str) -> String {
            panic!("as it is used")
        }
    }
    for as_made in [true, false] {
        let handle = agent([say("end")]).hooks(Panics(as_made)).build().run("go").detach();
        let outcome = tokio::time::timeout(Duration::from_secs(60), handle.done()).await.unwrap();
        let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
        assert_eq!(error.code(), "callback");
        assert!(error.to_string().contains("the hook Panics panicked"), "{error}");
    }
}
