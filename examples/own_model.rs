//! A model of your own: what it says is a stream, which the engine may drop at any instant.

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, History, Model, Usage,
    history::Message,
    model::{Conversation, Delta, DeltaStream, Finish, ModelSpec},
};

/// Repeats what it is asked, in capitals.
struct Loud;

impl Model for Loud {
    fn name(&self) -> &str {
        "own:loud"
    }

    fn open(&self, _spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(Loud)
    }
}

impl Conversation for Loud {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let last = history.entries().last().map(|entry| match &**entry {
            Message::User(message) => message.text.to_uppercase(),
            Message::Assistant(_) | Message::Results { .. } => String::new(),
        });
        let words: Vec<String> = last.unwrap_or_default().split_inclusive(' ').map(str::to_owned).collect();
        let usage = Usage::new(words.len() as u64, words.len() as u64);
        stream::iter([Delta::Sent, Delta::Opened])
            .chain(stream::iter(words).map(Delta::Text))
            .chain(stream::iter([Delta::Usage(usage), Delta::Ended(Finish::Natural)]))
            .map(Ok)
            .boxed()
    }
}

#[tokio::main]
async fn main() {
    let outcome = Agent::builder(Loud).build().run("is anybody here?").await;
    println!("{} ({} tokens)", outcome.answer().unwrap_or_default(), outcome.usage().total());
}
