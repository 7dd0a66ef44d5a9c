//! Going back to an earlier turn: what would be done, what cannot be undone, and then the doing.
//!
//! **Invariants**: a look changes nothing. What is done is what was looked at.

use std::{path::Path, sync::Arc};

use jiff::Timestamp;
use safepoint::{
    ids::{SessionId, TurnId},
    raw::{JournalFact, read_journal},
    session::Fork,
    store::{Error, Store},
};
use safepoint_snapshot::{PathChange, RestorePlan, Restored, Snapshot, Snapshots};

use crate::{
    render::{
        call,
        chat::rewind::{Extent, NOT_UNDONE},
        text::{cut, in_a_row, one_line, said},
    },
    session::snapshots::Moment,
};

/// A turn, as a list of them shows it.
#[derive(Clone, Debug)]
pub(crate) struct TurnLine {
    pub(crate) turn: TurnId,
    /// What the person said.
    pub(crate) said: String,
    pub(crate) at: Option<Timestamp>,
}

/// What a person goes back to: the conversation and the files as they were before a turn.
pub(crate) struct Rewind {
    pub(crate) session: SessionId,
    pub(crate) turn: TurnLine,
    /// How many turns go, this one included.
    turns: usize,
    /// The turn that is continued: of this session, or of the one that it continues. None: the conversation begins anew.
    from: Option<(SessionId, TurnId)>,
    /// The calls that changed something since, or may have.
    pub(crate) later: Vec<String>,
    pub(crate) files: Files,
}

/// What becomes of the files. Exhaustive: a plan, or why there is none.
pub(crate) enum Files {
    Plan(Box<RestorePlan>),
    None(String),
}

/// What going back came to.
#[derive(Debug, Default)]
pub(crate) struct WentBack {
    /// The session that continues, or why it could not be made; none if the files alone went back.
    pub(crate) session: Option<Result<SessionId, Error>>,
    /// What was done to files.
    pub(crate) restored: Option<Restored>,
}

/// Columns of a row before it is wrapped.
const LONGEST: usize = 400;

/// Our tools that change files alone: a restore of the files undoes their calls.
const FILE_TOOLS: [&str; 2] = ["write_file", "edit_file"];

/// The turns of a session that are part of its conversation, the oldest first, and what the session continues.
///
/// # Errors
/// The store's.
pub(crate) async fn turns(
    store: &dyn Store,
    session: &SessionId,
) -> Result<(Vec<TurnLine>, Option<(SessionId, TurnId)>), Error> {
    let (mut turns, mut begun): (Vec<TurnLine>, _) = (Vec::new(), None);
    read_journal(store, session, |past| match past.what {
        Ok(JournalFact::Begun { from, turn, .. }) => begun = Some((from, turn)),
        Ok(JournalFact::Planned { turn, .. }) if turns.iter().all(|line| line.turn != turn) => {
            turns.push(TurnLine { turn, said: String::new(), at: past.at });
        }
        Ok(JournalFact::Fact { turn, path, grown, .. }) if path.is_root() => {
            let text: Vec<&str> = grown.iter().filter_map(|entry| said(entry)).collect();
            let line = turns.iter_mut().find(|line| line.turn == turn && line.said.is_empty());
            if let (Some(line), Some(last)) = (line, text.last()) {
                line.said = (*last).to_owned();
            }
        }
        Ok(JournalFact::Forgotten { turn }) => turns.retain(|line| line.turn != turn),
        _ => {}
    })
    .await?;
    Ok((turns, begun))
}

/// Looks at what going back to before `turn` would do. `also` are files of others that are restored all the same; what is none of
/// them is an error in words.
pub(crate) async fn look(
    store: &dyn Store,
    session: &SessionId,
    turn: TurnId,
    (snapshots, also): (Option<Arc<Snapshots>>, Vec<String>),
) -> anyhow::Result<Result<Rewind, String>> {
    let (turns, begun) = turns(store, session).await?;
    let Some(place) = turns.iter().position(|line| line.turn == turn) else {
        return Ok(Err(format!("{turn} is no turn of this conversation; /rewind lists them")));
    };
    let from = match place.checked_sub(1).and_then(|before| turns.get(before)) {
        Some(before) => Some((session.clone(), before.turn)),
        None => begun,
    };
    let later = match &from {
        Some((of, at)) if of == session => Fork::of(of.clone()).at(*at).later_calls(store).await?,
        _ => whole(store, session, turn).await?,
    };
    let files = match snapshots {
        Some(snapshots) => plan(snapshots, session.clone(), turn, also).await?,
        None => Ok(Files::None("snapshots are off, or no tool changes files".to_owned())),
    };
    let (turns, turn) = (turns.len() - place, turns[place].clone());
    Ok(files.map(|files| Rewind { session: session.clone(), turn, turns, from, later, files }))
}

/// What was done in all of a session: its first turn goes too.
async fn whole(store: &dyn Store, session: &SessionId, first: TurnId) -> Result<Vec<String>, Error> {
    // What its first turn did is named at no end of a turn: the tools that it called are named from the journal.
    let mut first_did = Vec::new();
    read_journal(store, session, |past| {
        if let Ok(JournalFact::Fact { turn, fact, .. }) = past.what
            && turn == first
            && let safepoint::event::Fact::CallStarted { name, args, effect, .. } = &*fact
            && *effect != safepoint::tool::EffectClass::ReadOnly
        {
            first_did.push(format!("{name} {args}"));
        }
    })
    .await?;
    match Fork::of(session.clone()).at(first).later_calls(store).await {
        Ok(later) => first_did.extend(later),
        // It has not ended: there is nothing after it.
        Err(Error::NoTurn(..)) => {}
        Err(error) => return Err(error),
    }
    Ok(first_did)
}

/// Plans the files, off the async threads. A file that was named and is not left by the plan is an error in words.
async fn plan(
    snapshots: Arc<Snapshots>,
    session: SessionId,
    turn: TurnId,
    also: Vec<String>,
) -> anyhow::Result<Result<Files, String>> {
    let planned = tokio::task::spawn_blocking(move || {
        let all = snapshots.list()?;
        let is_it = |snapshot: &&Snapshot| Moment::of(snapshot, &session) == Some(Moment::Before(turn));
        let Some(target) = all.iter().find(is_it) else {
            return Ok(Ok(Files::None(format!("no snapshot was taken before {turn}, or it is too old"))));
        };
        let mut plan = snapshots.plan(target, &spans(&all, target, &session))?;
        for path in also {
            if !plan.confirm(Path::new(&path)) {
                return Ok(Err(format!("not among the files that are left: {path}")));
            }
        }
        Ok(Ok(Files::Plan(Box::new(plan))))
    });
    planned.await?
}

/// The spans since a snapshot in which this session's turns, or restores, changed files.
fn spans(all: &[Snapshot], from: &Snapshot, session: &SessionId) -> Vec<(Snapshot, Snapshot)> {
    let (mut spans, mut turn, mut restore) = (Vec::new(), None, None);
    for snapshot in all.iter().skip_while(|snapshot| *snapshot != from) {
        let (open, is_begin) = match Moment::of(snapshot, session) {
            Some(Moment::Before(_)) => (&mut turn, true),
            Some(Moment::After(_)) => (&mut turn, false),
            Some(Moment::BeforeRestore) => (&mut restore, true),
            Some(Moment::AfterRestore) => (&mut restore, false),
            None => continue,
        };
        if is_begin {
            *open = Some(snapshot.clone());
        } else if let Some(begin) = open.take() {
            spans.push((begin, snapshot.clone()));
        }
    }
    spans
}

impl Rewind {
    /// What would be done and what cannot be undone, a row a fact.
    pub(crate) fn rows(&self) -> Vec<String> {
        let Self { turn: TurnLine { turn, said, .. }, turns, .. } = self;
        let mut rows = vec![format!("Going back to before {turn}: {}", one_line(said))];
        let mut row = |label: &str, text: &str| {
            rows.push(cut(&format!("  {label:<13} {}", in_a_row(text)), LONGEST));
        };
        let turns = if *turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
        row("conversation", &format!("without {turns}, in a new session; this one stays as it is"));
        self.file_rows(&mut row);
        let calls = self.not_undone();
        if !calls.is_empty() {
            row(NOT_UNDONE, "what these calls did elsewhere stays done:");
        }
        calls.iter().for_each(|call| row("", &in_words(call)));
        rows
    }

    fn file_rows(&self, row: &mut impl FnMut(&str, &str)) {
        const SHOWN: usize = 20;
        let plan = match &self.files {
            Files::Plan(plan) => plan,
            Files::None(why) => return row("files", &format!("not restored: {why}")),
        };
        let changes = plan.changes();
        match changes.len() {
            0 => row("files", "none to restore"),
            1 => row("files", "1 to restore:"),
            many => row("files", &format!("{many} to restore:")),
        }
        for change in changes.iter().take(SHOWN) {
            row("", &format!("{}  {}", verb(change.change), change.path.display()));
        }
        if changes.len() > SHOWN {
            row("", &format!("and {} more", changes.len() - SHOWN));
        }
        let kept = plan.kept_back();
        if kept.is_empty() {
            return;
        }
        row("left as is", "not restored, changed by others since; `/rewind N PATH` includes one:");
        kept.iter().for_each(|kept| row("", &format!("{}  {}", kept.path.display(), kept.why)));
    }

    /// The calls whose effects a restore does not take back.
    pub(crate) fn not_undone(&self) -> Vec<String> {
        let is_of_files = |call: &&String| {
            let tool = call.split(' ').next().unwrap_or_default();
            matches!(self.files, Files::Plan(_)) && FILE_TOOLS.contains(&tool)
        };
        self.later.iter().filter(|call| !is_of_files(call)).cloned().collect()
    }

    /// Goes back. The files come first: if they cannot be restored, the conversation is as it was.
    pub(crate) async fn go(
        self,
        extent: Extent,
        (store, snapshots): (Arc<dyn Store>, Option<Arc<Snapshots>>),
        name: Option<SessionId>,
    ) -> anyhow::Result<WentBack> {
        let mut went = WentBack::default();
        if let (Files::Plan(plan), Some(snapshots), Extent::Both | Extent::Files) =
            (self.files, snapshots, extent)
        {
            went.restored = Some(tokio::task::spawn_blocking(move || snapshots.restore(*plan)).await??);
        }
        if extent != Extent::Files {
            went.session = Some(match self.from {
                Some((of, at)) => {
                    let fork = Fork::of(of).at(at);
                    let fork = if let Some(name) = name { fork.named(name) } else { fork };
                    fork.create(store).await.map(|forked| forked.session)
                }
                None => Ok(name.unwrap_or_else(SessionId::fresh)),
            });
        }
        Ok(went)
    }
}

/// A call that was named with its arguments, as a line of the chat names it: a single argument alone.
fn in_words(call: &str) -> String {
    let Some((tool, args)) = call.split_once(' ') else { return call.to_owned() };
    let mut read = serde_json::Deserializer::from_str(args).into_iter::<serde_json::Value>();
    match read.next() {
        Some(Ok(value)) => format!("{tool} {}{}", call::in_words(tool, &value), &args[read.byte_offset()..]),
        _ => call.to_owned(),
    }
}

/// Undoes a restore that was cut off, or else this one, between two snapshots. None if there is neither.
pub(crate) async fn undo(
    snapshots: Arc<Snapshots>,
    last: Option<(Snapshot, Snapshot)>,
) -> anyhow::Result<Option<Restored>> {
    let undone = tokio::task::spawn_blocking(move || -> anyhow::Result<Option<Restored>> {
        let plan = match (snapshots.unfinished()?, last) {
            (Some((_, before)), _) => snapshots.plan(&before, &[])?,
            (None, Some((before, after))) => snapshots.plan(&before.clone(), &[(before, after)])?,
            (None, None) => return Ok(None),
        };
        Ok(Some(snapshots.restore(plan)?))
    });
    undone.await?
}

/// What a restore came to, a row a fact; `hint` stands behind the first.
pub(crate) fn restored_rows(restored: &Restored, hint: &str) -> Vec<String> {
    let count = restored.changes.iter().filter(|change| !change.is_directory).count();
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let mut rows = vec![format!("Restored {files}{hint}")];
    let kept = restored.kept_back.iter();
    rows.extend(
        kept.map(|kept| format!("  left as is    {}  {}", one_line(&kept.path.to_string_lossy()), kept.why)),
    );
    rows
}

pub(crate) fn verb(change: PathChange) -> &'static str {
    match change {
        PathChange::Create => "brought back",
        PathChange::Replace => "replaced    ",
        PathChange::Remove => "removed     ",
        PathChange::Permissions => "permissions ",
    }
}
