//! Opens a stored chat: its earlier messages, its open work, and the list of other sessions.

use std::sync::Arc;

use safepoint::{
    approval::ApprovalRequest,
    event::Fact,
    history::Message,
    ids::{SessionId, TurnId},
    raw::{JournalFact, StoredStop, read_journal},
    receipt::ReasonReport,
    store::Store,
};

use super::conversations::short;
use crate::{
    control::list::{self, Listed},
    prices::Prices,
    render::{
        approval::is_open,
        chat::{
            meter::Counts,
            state::{State, Tone},
            todo::{LIST_TOOL, Todos},
        },
        text::{self, cut, moment, one_line},
    },
};

/// What a session was left with.
#[derive(Debug, Default)]
pub(crate) struct Left {
    said: Vec<(TurnId, Said)>,
    questions: Vec<ApprovalRequest>,
    /// The to-do list after each turn that changed it.
    todos: Vec<(TurnId, Todos)>,
    label: String,
    title: String,
    /// What was used until now.
    counts: Counts,
}

/// Who said what, and what was done in between. Exhaustive: the two sides of a conversation, and the tools.
#[derive(Debug)]
enum Said {
    Person(String),
    Model(String),
    Call(Arc<Fact>),
}

impl Left {
    /// Reads it from the store; nothing of a session that is new.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn of(store: &dyn Store, session: &SessionId, prices: &Prices) -> anyhow::Result<Self> {
        let row = store.open(session).await?;
        let (label, title) = (row.label, row.title);
        let mut said: Vec<(TurnId, Said)> = Vec::new();
        let (mut todos, mut seen) = (Vec::new(), Todos::default());
        let mut counts = Counts::default();
        read_journal(store, session, |past| match past.what {
            Ok(JournalFact::Fact { turn, path, fact, grown }) => {
                counts.past(turn, &fact, (path.is_root(), prices));
                if !path.is_root() {
                    return;
                }
                let people = grown.iter().filter_map(|entry| text::said(entry));
                said.extend(people.map(|text| (turn, Said::Person(text.to_owned()))));
                said.extend(spoken(&fact).into_iter().map(|spoken| (turn, spoken)));
                if seen.see(&fact) {
                    todos.push((turn, seen.clone()));
                }
                if is_call(&fact) {
                    said.push((turn, Said::Call(fact)));
                }
            }
            // Of another session's turns: none of this one takes it back.
            Ok(JournalFact::Begun { history, .. } | JournalFact::BegunMore { history }) => {
                said.extend(history.iter().filter_map(|entry| Some((TurnId::new(0), before(entry)?))));
            }
            Ok(JournalFact::Forgotten { turn }) => {
                said.retain(|(of, _)| *of != turn);
                todos.retain(|(of, _)| *of != turn);
            }
            _ => {}
        })
        .await?;
        let rows = store.approvals(session).await?;
        let open = rows.iter().filter(|row| is_open(row));
        let questions = open.filter_map(|row| serde_json::from_slice(&row.asked.bytes).ok()).collect();
        counts.cut_off();
        Ok(Self { said, questions, todos, label, title, counts })
    }

    /// Shows it: the last messages, how the last turn ended, and the open approvals.
    pub(crate) fn show(self, state: &mut State, now: std::time::Instant) {
        const SHOWN: usize = 8;
        let session = state.about.session.clone();
        state.meter.earlier(self.counts);
        state.kept.is_begun |= !self.said.is_empty();
        if self.said.is_empty() && !state.kept.is_named {
            return;
        }
        if self.said.is_empty() {
            let kept = format!("stored as {session}; `safepoint chat --session {session}` reopens it");
            return state.tell(Tone::Aside, &kept);
        }
        // A name that the program gave says nothing to a person.
        let is_named = short(&session) == session || self.title.is_empty();
        let name = if is_named { session.clone() } else { one_line(&self.title) };
        let messages = |said: &(TurnId, Said)| !matches!(said.1, Said::Call(_));
        let before = self.said.iter().filter(|said| messages(said)).count().saturating_sub(SHOWN);
        let begins = self.said.iter().enumerate().filter(|(_, said)| messages(said)).nth(before);
        let begins = begins.map_or(0, |(at, _)| at);
        let earlier = if before > 0 { format!("; {before} messages before these") } else { String::new() };
        let head = match state.about.is_kept {
            true => format!("Reopened {name}{earlier} (`safepoint trace {session}` shows all)"),
            false => format!("The conversation so far{earlier}"),
        };
        state.tell(Tone::Aside, &head);
        for (_, said) in self.said.into_iter().skip(begins) {
            match said {
                Said::Person(text) => {
                    state.said(&text, "");
                    state.last_message = Some(text);
                }
                Said::Model(text) => {
                    state.answered(&text);
                    state.text(&text);
                    state.end_text();
                }
                Said::Call(fact) => state.call(&fact),
            }
        }
        state.todos = self.todos.into_iter().next_back().map(|(_, todos)| todos).unwrap_or_default();
        state.gap();
        if let Some(how) = how(&self.label, self.questions.len()) {
            state.kept.is_open = self.questions.is_empty();
            state.tell(Tone::Plain, &how);
        }
        for question in self.questions {
            state.ask(question, now);
        }
    }
}

/// What was said before the session began.
fn before(entry: &Message) -> Option<Said> {
    match entry {
        Message::User(message) => Some(Said::Person(message.text.clone())),
        Message::Assistant(message) => {
            let text = message.text();
            (!text.trim().is_empty()).then(|| Said::Model(text.into_owned()))
        }
        Message::Results { .. } => None,
    }
}

/// Whether a call began or ended that is shown; the to-do list has its own place.
fn is_call(fact: &Fact) -> bool {
    match fact {
        Fact::CallStarted { name, .. } => name != LIST_TOOL,
        Fact::CallEnded { report, .. } => report.name != LIST_TOOL,
        _ => false,
    }
}

fn spoken(fact: &Fact) -> Vec<Said> {
    match fact {
        Fact::ModelEnded { message, .. } => {
            let text = message.text();
            if text.trim().is_empty() { Vec::new() } else { vec![Said::Model(text.into_owned())] }
        }
        Fact::SteerTaken { steers, .. } => {
            let said = steers.iter().filter(|steer| !steer.is_notice());
            said.map(|steer| Said::Person(steer.message.text.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// Stops that were requested while the session was not open: by whom and when. Opening the session applies them.
pub(crate) async fn stops(store: &dyn Store, session: &SessionId) -> Vec<String> {
    // Opening the session reports records that cannot be read.
    let rows = store.stops(session, 0).await.unwrap_or_default();
    let unseen = rows.into_iter().filter(|row| !row.seen);
    let stops = unseen.filter_map(|row| match StoredStop::from_bytes(&row.bytes) {
        Ok(StoredStop::Session(stop)) => {
            let by = stop.reason().map_or(String::new(), |by| {
                let ReasonReport { code, actor, text, .. } = by.into();
                format!(" by {code} ({actor}): {text}")
            });
            Some(format!("{session} was asked to stop{by}, at {}, while it was not open", moment(row.at)))
        }
        _ => None,
    });
    stops.collect()
}

/// The state of the last turn, for a person who continues the chat.
fn how(label: &str, questions: usize) -> Option<String> {
    let how = match (label, questions) {
        ("suspended" | "running" | "cut", 1..) => {
            return Some("the last turn waits for your answer".to_owned());
        }
        ("running" | "cut", 0) => "was cut off when its program ended",
        // A stop took its questions back.
        ("stopped", _) | ("suspended", 0) => "was stopped",
        ("failed", _) => "failed",
        _ => return None,
    };
    Some(format!("the last turn {how}: /resume resumes it, a new message leaves it"))
}

/// The sessions with their last state, numbered.
pub(crate) async fn listed(
    store: Option<&Arc<dyn Store>>,
    here: &SessionId,
    columns: usize,
) -> anyhow::Result<(Vec<String>, String)> {
    const NEWEST: usize = 15;
    const NUMBER: usize = 6;
    const ID: usize = 24;
    let mut all = list::recent(store, NEWEST).await?;
    all.retain(|one| one.id != here.as_str());
    if all.is_empty() {
        return Ok((Vec::new(), "no other session (`safepoint chat --session NAME` stores one)".to_owned()));
    }
    let widest = all.iter().map(|one| short(&one.id).chars().count()).max().unwrap_or(0).min(ID);
    let lines: Vec<String> = all
        .iter()
        .enumerate()
        .map(|(index, one)| {
            let line = one.line_of(short(&one.id), widest);
            format!("  {:>2}  {}", index + 1, cut(&line, columns.saturating_sub(NUMBER)))
        })
        .collect();
    let ids = all.into_iter().map(|one| one.id).collect();
    Ok((ids, format!("{}\n/resume N opens one of them and leaves this one", lines.join("\n"))))
}

/// The named session, or why this chat cannot open it.
pub(crate) async fn meant(
    store: Option<&Arc<dyn Store>>,
    here: &SessionId,
    named: &str,
) -> anyhow::Result<Result<String, String>> {
    let Some(one) = list::meant(store, named).await? else {
        return Ok(Err(format!("session {named} not found; /sessions lists them")));
    };
    let Listed { id, .. } = &one;
    Ok(match one.owner() {
        _ if id == here.as_str() => Err("that is this one".to_owned()),
        Some(owner) => Err(format!(
            "{id} is open elsewhere, in {owner}: use it there, or steer it from here with `safepoint steer {id} TEXT`; \
             `safepoint stop {id}` stops it there"
        )),
        None if !one.is_kept() => Err(format!("{id} is not stored: only its own process can resume it")),
        None => Ok(id.clone()),
    })
}

#[cfg(test)]
mod tests {
    use safepoint::{
        Agent, History, Session,
        session::{ChatPlanner, SessionStop},
        store::{MemoryStore, OwnerProcess},
    };
    use safepoint_testkit::{script::Script, scripted::ScriptedModel};

    use super::*;

    /// S7.50: a conversation that a session was given to begin with is shown when the chat is reopened.
    #[tokio::test]
    async fn a_given_beginning_is_shown() {
        let (store, id) = (Arc::new(MemoryStore::default()), SessionId::from("s"));
        let mut history = History::new();
        history.push(Message::User("once".into()));
        let agent = Agent::builder(ScriptedModel::new(Script::of([]))).build();
        let chat = Session::builder(ChatPlanner::new(agent)).history(history);
        let session: Session<String> =
            chat.open(store.clone(), id.clone(), OwnerProcess::here()).await.unwrap();
        session.stop(SessionStop::now());
        session.done().await;
        let left = Left::of(&*store, &id, &Prices::default()).await.unwrap();
        assert!(matches!(&left.said[..], [(_, Said::Person(text))] if text == "once"), "{left:?}");
    }
}
