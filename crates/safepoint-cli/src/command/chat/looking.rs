//! What the list of conversations shows and searches of each: what it has used, and what was said in it.
//!
//! **Invariants**: what is held of all conversations together is bounded; a journal that is too long is not read; nothing is read
//! for a list that is closed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use safepoint::{
    event::Fact,
    history::Message,
    ids::{SessionId, TurnId},
    raw::{JournalFact, read_journal},
    store::{Error, Store},
};

use crate::{
    control::list::Listed,
    render::{
        chat::{
            excerpt::{self, Said},
            sessions::Looked,
        },
        text,
    },
};

/// The bytes of what was said that are held for the search; the same in small letters takes as many again.
const ROOM: usize = 16 << 20;
/// Journals with more records are not read.
const LONGEST: u64 = 20_000;
/// So often the list shows what was found.
const OFTEN: Duration = Duration::from_millis(200);

/// Reads these, in their order, as long as `tell` says that it is wanted.
pub(super) async fn look(all: Vec<(Listed, Arc<dyn Store>)>, tell: impl Fn(Vec<Looked>) -> bool) {
    let (mut held, mut some, mut since) = (0, Vec::new(), Instant::now());
    for (one, store) in all {
        let mut looked = Looked { id: one.id.clone(), ..Looked::default() };
        let is_short = one.row.as_ref().is_some_and(|row| row.head <= LONGEST);
        if is_short && let Ok(read) = Read::of(&*store, &SessionId::from(one.id)).await {
            looked.spent = read.used().unwrap_or_default();
            let said = read.said();
            if held + said.len() <= ROOM {
                held += said.len();
                looked.said = Some(Arc::new(said));
            }
        }
        some.push(looked);
        if since.elapsed() >= OFTEN {
            if !tell(std::mem::take(&mut some)) {
                return;
            }
            since = Instant::now();
        }
    }
    if !tell(some) {
        // The list is closed.
    }
}

/// What a journal says.
#[derive(Default)]
struct Read {
    tokens: u64,
    cost: Option<f64>,
    said: Vec<(TurnId, Said)>,
    /// Bytes that were added to it.
    held: usize,
}

impl Read {
    async fn of(store: &dyn Store, id: &SessionId) -> Result<Self, Error> {
        let mut read = Self { cost: Some(0.0), ..Self::default() };
        read_journal(store, id, |past| {
            if let Ok(what) = past.what {
                read.take(what);
            }
        })
        .await?;
        Ok(read)
    }

    fn take(&mut self, what: JournalFact) {
        match what {
            JournalFact::Begun { history, .. } | JournalFact::BegunMore { history } => {
                history.iter().for_each(|message| self.message(message));
            }
            JournalFact::Forgotten { turn } => self.said.retain(|(of, _)| *of != turn),
            JournalFact::Fact { turn, path, fact, grown } if path.is_root() => {
                grown.iter().filter_map(|entry| text::said(entry)).for_each(|text| self.say(turn, text));
                self.fact(turn, &fact);
            }
            _ => {}
        }
    }

    fn fact(&mut self, turn: TurnId, fact: &Fact) {
        match fact {
            Fact::ModelEnded { message, .. } => self.say(turn, &message.text()),
            Fact::SteerTaken { steers, .. } => {
                let said = steers.iter().filter(|steer| !steer.is_notice());
                said.for_each(|steer| self.say(turn, &steer.message.text));
            }
            Fact::Settled { receipt, .. } => {
                self.tokens += receipt.usage_total.total().max(receipt.usage.total());
                let cost = self.cost.zip(receipt.cost_total.or(receipt.cost));
                self.cost = cost.map(|(sum, more)| sum + more);
            }
            _ => {}
        }
    }

    /// A message of the conversation that the session began with.
    fn message(&mut self, message: &Message) {
        match message {
            Message::User(message) => self.say(TurnId::new(0), &message.text),
            Message::Assistant(message) => self.say(TurnId::new(0), &message.text()),
            Message::Results { .. } => {}
        }
    }

    fn say(&mut self, turn: TurnId, text: &str) {
        // What is taken out of the conversation again makes room: beyond the double nothing is held meanwhile.
        let text = if self.held < 2 * excerpt::LONGEST { text } else { "" };
        self.held += text.len();
        match self.said.last_mut().filter(|(of, _)| *of == turn) {
            Some((_, said)) => said.push(text),
            None => {
                let mut said = Said::default();
                said.push(text);
                self.said.push((turn, said));
            }
        }
    }

    fn said(&self) -> Said {
        let mut all = Said::default();
        self.said.iter().for_each(|(_, said)| all.append(said));
        all.is_cut |= self.held >= 2 * excerpt::LONGEST;
        all
    }

    /// What the session has used: its cost, where all of its turns have a price; else its tokens.
    fn used(&self) -> Option<String> {
        match (self.tokens, self.cost) {
            (0, _) => None,
            (_, Some(cost)) => Some(format!("{cost:.2}")),
            (tokens, None) => Some(tokens_shown(tokens)),
        }
    }
}

fn tokens_shown(tokens: u64) -> String {
    const THOUSAND: u64 = 1000;
    const MILLION: u64 = 1_000_000;
    match tokens {
        MILLION.. => format!("{}.{}M tokens", tokens / MILLION, tokens % MILLION / (MILLION / 10)),
        THOUSAND.. => format!("{}.{}k tokens", tokens / THOUSAND, tokens % THOUSAND / (THOUSAND / 10)),
        _ => format!("{tokens} tokens"),
    }
}
