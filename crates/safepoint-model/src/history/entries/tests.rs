//! A list of entries beside what a look at all of them says.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::message::{AssistantMessage, Block, CallResult, ResultStatus, ToolCall};

fn result(id: u8) -> CallResult {
    CallResult::of_text(CallId::from(id.to_string()), "work", "ok", ResultStatus::Ok)
}

fn message(calls: &[u8]) -> Message {
    let call = |id: &u8| {
        Block::Call(ToolCall { id: CallId::from(id.to_string()), name: "work".into(), args: "{}".into() })
    };
    let text = Block::Text { text: "so".into() };
    Message::Assistant(
        AssistantMessage { blocks: [text].into_iter().chain(calls.iter().map(call)).collect() }.into(),
    )
}

fn entry() -> impl Strategy<Value = Message> {
    let ids = || proptest::collection::vec(any::<u8>(), 0..3);
    prop_oneof![
        1 => Just(Message::User("go".into())),
        1 => Just(Message::User("".into())),
        1 => ids().prop_map(|ids| message(&ids)),
        1 => ids().prop_map(|ids| Message::Results { results: ids.into_iter().map(result).collect() }),
        // What an engine makes, so that most of a list is whole.
        1 => Just(message(&[])),
    ]
}

/// Rounds as an engine makes them, and here and there something else.
fn lists() -> impl Strategy<Value = Vec<Message>> {
    let round =
        any::<u8>().prop_map(|id| vec![message(&[id]), Message::Results { results: vec![result(id)] }]);
    let part = prop_oneof![8 => round, 1 => proptest::collection::vec(entry(), 0..3)];
    proptest::collection::vec(part, 0..150).prop_map(|parts| parts.into_iter().flatten().collect())
}

/// The same question, asked of all entries at once.
fn is_whole(entries: &[Message]) -> bool {
    let mut seen = HashSet::new();
    let mut entries = entries.iter().peekable();
    while let Some(entry) = entries.next() {
        let calls: Vec<&CallId> = match entry {
            Message::User(message) if !message.is_blank() => continue,
            Message::Assistant(message) if !message.is_blank() => {
                message.calls().map(|call| &call.id).collect()
            }
            Message::User(_) | Message::Assistant(_) | Message::Results { .. } => return false,
        };
        if !calls.iter().all(|id| seen.insert(*id)) {
            return false;
        }
        let is_answer = |next: &&Message| match next {
            Message::Results { results } => {
                results.iter().map(|result| &result.call_id).eq(calls.iter().copied())
            }
            Message::User(_) | Message::Assistant(_) => false,
        };
        if !calls.is_empty() && entries.next_if(is_answer).is_none() {
            return false;
        }
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// S5.1: what is known of each entry since it was added is what a look at all of them says, also in a clone and in a
    /// beginning of it.
    #[test]
    fn a_list_knows_its_calls_and_whether_it_is_whole(list in lists(), cut in 0..350usize) {
        let cut = cut.min(list.len());
        let mut entries = Entries::default();
        let mut before = entries.clone();
        for (at, entry) in list.iter().enumerate() {
            if at == cut {
                before = entries.clone();
            }
            entries.push(Arc::new(entry.clone()));
        }
        let mut known = vec![(entries.clone(), &list[..]), (entries.first_of(cut), &list[..cut])];
        if cut < list.len() {
            known.push((before, &list[..cut]));
        }
        known.push((Entries::only_sent(list.iter().cloned().map(Arc::new)), &list[..]));
        for (mut entries, list) in known {
            prop_assert!(entries.iter().map(|entry| &**entry).eq(list));
            prop_assert_eq!(entries.len(), list.len());
            let ids: HashSet<CallId> = list.iter().flat_map(|entry| match entry {
                Message::Assistant(message) => message.calls().map(|call| call.id.clone()).collect(),
                Message::User(_) | Message::Results { .. } => Vec::new(),
            }).collect();
            for id in (0..=u8::MAX).step_by(5).map(|id| CallId::from(id.to_string())) {
                prop_assert_eq!(entries.has_call(&id), ids.contains(&id));
            }
            prop_assert_eq!(entries.is_whole(), is_whole(list));
        }
    }
}

/// S12.43: a list and its clones grow apart, wherever a chunk ends, and are equal by what is in them.
#[test]
fn a_clone_grows_by_itself() {
    let said = |text: String| Arc::new(Message::User(text.as_str().into()));
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
        let one: Entries = (0..len).map(|at| said(at.to_string())).collect();
        let (mut left, mut right) = (one.clone(), one.clone());
        for at in 0..2 * CHUNK {
            left.push(said(format!("left {at}")));
            right.push(said(format!("right {at}")));
        }
        assert_eq!((left.len(), right.len(), one.len()), (len + 2 * CHUNK, len + 2 * CHUNK, len));
        assert_eq!(
            (left.common(&right, |a, b| a == b), left.common(&left.clone(), |_, _| false)),
            (len, left.len())
        );
        assert_ne!(left, right);
        assert_eq!((left.first_of(len), right.first_of(len)), (one.clone(), one.clone()));
        let written = serde_json::to_string(&left).unwrap();
        assert_eq!(serde_json::from_str::<Entries>(&written).unwrap(), left);
        assert_eq!(left.range(len..=len).next(), left.get(len));
        assert_eq!((left.get(left.len()), left.range(left.len() + 1..).count()), (None, 0));
    }
}
