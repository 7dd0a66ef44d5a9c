//! `/rewind` and `/undo`: the look, the choice and the way back.
//!
//! **Invariants**: nothing is done before what cannot be undone was shown; a turn that began meanwhile changes nothing of that.

use std::{sync::Arc, time::Instant};

use anyhow::Context as _;
use safepoint::{
    ids::{SessionId, TurnId},
    store::Store,
};
use safepoint_snapshot::{Restored, Snapshot};

use super::{driver::Driver, later::Later};
use crate::{
    control::list::ago,
    render::chat::{
        choosing::OfferedTurn,
        rewind::{Choices, Extent, RewindAsk},
        state::{Leave, Tone},
    },
    session::{
        rewind::{self, Files, Rewind, WentBack},
        snapshots::TurnSnapshots,
    },
};

/// The session to open after this one, and what its person finds there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Next {
    pub(crate) id: String,
    /// Whether it is where this one is, be that in memory; else in the store.
    pub(crate) is_here: bool,
    /// Whether it is a new one, of no name: if nothing is said in it, nothing stays.
    pub(crate) is_new: bool,
    /// What is said first: beside the greeting, and in its place.
    pub(crate) notes: Vec<String>,
    pub(crate) rows: Vec<String>,
    /// The model that was chosen in this one, if it goes along.
    pub(crate) model: Option<String>,
    /// What stands in the input.
    pub(crate) typed: String,
    /// Whether that is sent at once.
    pub(crate) is_sent: bool,
    pub(crate) last: LastRewind,
}

/// What going back needs, and what was looked at.
pub(crate) struct Rewinds {
    /// The store of this session: in a file, or in memory.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) snapshots: Option<Arc<TurnSnapshots>>,
    /// What `/undo` takes back.
    pub(crate) last: LastRewind,
    looked: Option<Rewind>,
}

/// What was gone back from.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastRewind {
    /// The snapshots before and after the restore.
    pub(crate) files: Option<(Snapshot, Snapshot)>,
    /// The session that was left.
    pub(crate) session: Option<SessionId>,
}

/// What a look or a way back came to.
pub(crate) enum RewindNews {
    Turns(Vec<OfferedTurn>),
    Looked(Box<Rewind>),
    Went { rows: Vec<String>, last: Box<LastRewind>, next: Option<(SessionId, String)> },
}

impl Rewinds {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        snapshots: Option<Arc<TurnSnapshots>>,
        last: LastRewind,
    ) -> Self {
        Self { store, snapshots, last, looked: None }
    }
}

impl Driver {
    pub(crate) fn tell_of_snapshots(&mut self) {
        let notes = self.rewinds.snapshots.as_ref().map(|snapshots| snapshots.notes());
        notes.iter().flatten().for_each(|note| self.state.tell(Tone::Aside, note));
    }

    /// Leaves this session for another one.
    pub(crate) fn leave_for(&mut self, mut next: Next) {
        // A session that is reopened works as it did before.
        next.model = self.state.kept.model.clone().filter(|_| next.is_here);
        self.next = Some(next);
        self.state.leaving = Some(Leave::Tidily);
        self.leave(Leave::Tidily);
    }

    pub(crate) fn rewind(&mut self, ask: RewindAsk) {
        if self.host.session.current_turn().is_some() {
            self.rewinds.looked = None;
            return self.state.tell(Tone::Aside, "a turn is running, so nothing was changed; /stop first");
        }
        let looked = self.rewinds.looked.take();
        let (store, last) = (Arc::clone(&self.rewinds.store), self.rewinds.last.clone());
        let (snapshots, id) = (self.rewinds.snapshots.clone(), self.host.id.clone());
        let later = self.later.0.clone();
        tokio::spawn(async move {
            let done = match ask {
                RewindAsk::Turns => list(&*store, &id).await,
                RewindAsk::Before(turn, also) => look(&*store, &id, (turn, also), snapshots).await,
                RewindAsk::Go(extent) => go((looked, extent), store, snapshots).await,
                RewindAsk::Undo => undo(last, id, snapshots).await,
            };
            let answer = done.unwrap_or_else(|error| Later::Message(Tone::Bad, format!("{error:#}")));
            if later.send(answer).is_err() {
                // The chat is over, and has shown it.
            }
        });
    }

    pub(crate) fn rewind_news(&mut self, news: RewindNews) {
        match news {
            RewindNews::Turns(turns) => self.state.pick_turn(&turns),
            RewindNews::Looked(rewind) => {
                let has_files = matches!(&rewind.files, Files::Plan(plan) if !plan.changes().is_empty());
                let choices = if has_files { Choices::All } else { Choices::Conversation };
                let rows = rewind.rows();
                self.state.ask_rewind(&rows, choices, Instant::now());
                self.rewinds.looked = Some(*rewind);
            }
            RewindNews::Went { rows, last, next } => {
                self.rewinds.last = LastRewind::clone(&last);
                match next {
                    None => rows.iter().for_each(|row| self.state.tell(Tone::Plain, row)),
                    Some((id, typed)) => {
                        let (id, last) = (id.to_string(), *last);
                        self.leave_for(Next { id, is_here: true, rows, typed, last, ..Next::default() });
                    }
                }
            }
        }
    }
}

/// The turns, the newest first.
async fn list(store: &dyn Store, id: &SessionId) -> anyhow::Result<Later> {
    let (turns, _) = rewind::turns(store, id).await?;
    let offered = turns.iter().rev().map(|line| OfferedTurn {
        turn: line.turn,
        said: line.said.clone(),
        when: line.at.map(ago).unwrap_or_default(),
    });
    Ok(Later::Rewind(RewindNews::Turns(offered.collect())))
}

async fn look(
    store: &dyn Store,
    id: &SessionId,
    (turn, also): (TurnId, Vec<String>),
    snapshots: Option<Arc<TurnSnapshots>>,
) -> anyhow::Result<Later> {
    let snapshots = snapshots.map(|snapshots| Arc::clone(&snapshots.snapshots));
    Ok(match rewind::look(store, id, turn, (snapshots, also)).await? {
        Ok(rewind) => Later::Rewind(RewindNews::Looked(Box::new(rewind))),
        Err(why) => Later::Message(Tone::Bad, why),
    })
}

async fn go(
    (looked, extent): (Option<Rewind>, Extent),
    store: Arc<dyn Store>,
    snapshots: Option<Arc<TurnSnapshots>>,
) -> anyhow::Result<Later> {
    let looked = looked.context("`/rewind N` shows first what going back does")?;
    let (left, turn) = (looked.session.clone(), looked.turn.clone());
    let snapshots = snapshots.map(|snapshots| Arc::clone(&snapshots.snapshots));
    let WentBack { session, restored } = looked.go(extent, (store, snapshots), None).await?;
    let mut rows = match &session {
        Some(Ok(session)) => {
            vec![format!("Went back to before {}, in {session}; {left} stays as it was", turn.turn)]
        }
        Some(Err(error)) => vec![format!("the conversation stays as it is: {error}")],
        None => Vec::new(),
    };
    rows.extend(restored.iter().flat_map(restored_rows));
    let session = session.and_then(Result::ok);
    let files = restored.map(|restored| (restored.before, restored.after));
    let last = LastRewind { files, session: session.as_ref().map(|_| left) };
    let next = session.map(|session| (session, turn.said));
    Ok(Later::Rewind(RewindNews::Went { rows, last: Box::new(last), next }))
}

/// Gives back the files, and opens the session that was left.
async fn undo(
    last: LastRewind,
    id: SessionId,
    snapshots: Option<Arc<TurnSnapshots>>,
) -> anyhow::Result<Later> {
    let restored = match snapshots {
        Some(snapshots) => rewind::undo(Arc::clone(&snapshots.snapshots), last.files).await?,
        None => None,
    };
    if restored.is_none() && last.session.is_none() {
        return Ok(Later::Message(Tone::Plain, "there is no /rewind to undo here".to_owned()));
    }
    let mut rows: Vec<String> = restored.iter().flat_map(restored_rows).collect();
    if let Some(session) = &last.session {
        rows.insert(0, format!("Back in {session}; {id} stays as it was"));
    }
    let files = restored.map(|restored| (restored.before, restored.after));
    let next = last.session.map(|session| (session, String::new()));
    let last = LastRewind { files, session: next.as_ref().map(|_| id) };
    Ok(Later::Rewind(RewindNews::Went { rows, last: Box::new(last), next }))
}

fn restored_rows(restored: &Restored) -> Vec<String> {
    rewind::restored_rows(restored, "; /undo takes that back")
}
