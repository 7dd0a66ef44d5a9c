//! Recovery: the conversation and the turn that was left open, folded from the records.

use std::{collections::HashSet, sync::Arc};

use safepoint_scope::Code;

use super::{Journal, JournalLine, TurnLog, turn_log::restore};
use crate::{
    contract::{
        log::{self, Log},
        store,
    },
    run::{machine::Machine, shared::AllowList},
    session::{
        lost_runs::{FoldedBackground, LostRun, background_begun},
        outcome::ItemOutcome,
        stop::StoppedTurn,
    },
    value::{
        event::Fact,
        history::History,
        ids::{ApprovalId, Path, RunId, TurnId},
        receipt::Ending,
    },
};

/// How many records are read at once.
const PAGE: usize = 1024;

/// What the records say.
#[derive(Default)]
pub(in crate::session) struct Recovered {
    pub(in crate::session) history: History,
    /// How many turns there were.
    pub(in crate::session) turns: u64,
    pub(in crate::session) left: Option<LeftTurn>,
    /// Calls that may run without a further question, from every turn, including forgotten ones.
    pub(in crate::session) always: Arc<AllowList>,
    /// Items of a turn that never began: they are queued again.
    pub(in crate::session) put_back: Vec<u64>,
    /// Background runs of another owner that ended with it; they are never resumed.
    pub(in crate::session) background: HashSet<Path>,
    /// Those of them that the model has not been notified of.
    pub(in crate::session) lost: Vec<LostRun>,
}

/// A turn that can be resumed.
pub(in crate::session) struct LeftTurn {
    pub(in crate::session) turn: TurnId,
    pub(in crate::session) fate: ItemOutcome,
    pub(in crate::session) run: RunId,
    /// The conversation before it.
    pub(in crate::session) before: History,
    pub(in crate::session) log: Arc<dyn Log>,
    /// Its open questions.
    pub(in crate::session) open: HashSet<ApprovalId>,
    /// Whether only the end of its process, intended or not, ended it early.
    pub(in crate::session) is_cut_off: bool,
}

/// One turn as it is folded.
struct FoldedTurn {
    turn: TurnId,
    from: u64,
    items: Vec<u64>,
    before: History,
    machine: Machine,
    run: Option<RunId>,
    ending: Option<Ending>,
    fate: Option<ItemOutcome>,
    is_cut_off: bool,
    after: StoppedTurn,
}

impl FoldedTurn {
    fn new(turn: TurnId, from: u64, items: Vec<u64>, before: History) -> Self {
        let machine = Machine::default();
        Self {
            turn,
            from,
            items,
            before,
            machine,
            run: None,
            ending: None,
            fate: None,
            is_cut_off: true,
            after: StoppedTurn::Resumable,
        }
    }

    fn take(&mut self, fact: Arc<Fact>) {
        match &*fact {
            Fact::AttemptOpened { run, .. } => {
                self.run = Some(run.clone());
                self.ending = None;
                self.is_cut_off = true;
            }
            Fact::StopRequested(asked) if asked.reason.code != Code::SHUTDOWN.as_str() => {
                self.is_cut_off = false;
            }
            Fact::Settled { receipt, .. } => self.ending = Some(receipt.ending),
            _ => {}
        }
        self.machine.apply(&log::read_back(fact));
    }

    /// The conversation after it.
    fn after(&self) -> History {
        if self.run.is_some() { self.machine.history_now() } else { self.before.clone() }
    }

    /// The turn's outcome. A turn without a recorded end was cut by the end of its process.
    fn fate(&self) -> ItemOutcome {
        match (self.fate, self.ending) {
            (Some(fate), _) => fate,
            (None, Some(Ending::Done)) => ItemOutcome::Completed(self.turn),
            (None, Some(Ending::Failed)) => ItemOutcome::Failed(self.turn),
            (None, Some(Ending::Suspended)) => ItemOutcome::Suspended(self.turn),
            (None, Some(Ending::Stopped) | None) => ItemOutcome::Interrupted(self.turn),
        }
    }
}

/// Folds everything. An unreadable record is an error that says where, and nothing is changed.
pub(in crate::session) async fn recover(journal: &Arc<Journal>) -> Result<Recovered, store::Error> {
    let mut history = History::new();
    let always = Arc::new(AllowList::default());
    let mut turn: Option<FoldedTurn> = None;
    let (mut background, mut folded) = (HashSet::new(), FoldedBackground::default());
    let mut from = Some(0);
    while let Some(position) = from {
        let page = journal.store().read(journal.session(), position, PAGE).await?;
        for entry in page.entries {
            let damaged = |damage| store::Error::Damaged(journal.session().clone(), damage);
            let record = entry.record.map_err(damaged)?;
            match JournalLine::read(entry.position, &record).map_err(damaged)? {
                JournalLine::Planned { turn: next, items, .. } => {
                    if let Some(last) = turn.take() {
                        history = last.after();
                    }
                    let mut before = history.clone();
                    before.close();
                    turn = Some(FoldedTurn::new(next, entry.position, items, before));
                }
                JournalLine::Fact { turn: of, path, fact, grown, .. } => {
                    always.take(&fact);
                    background.extend(background_begun(&fact));
                    folded.take(of, &path, &fact);
                    if let Some(turn) = turn.as_mut().filter(|turn| turn.turn == of && path.is_root()) {
                        // A resumed turn is running again.
                        turn.fate = None;
                        turn.take(restore(&turn.before, fact, grown));
                    }
                }
                JournalLine::Ended { turn: of, fate, .. } => {
                    if let Some(turn) = turn.as_mut().filter(|turn| turn.turn == of) {
                        turn.fate = Some(fate);
                    }
                }
                JournalLine::Forgotten { turn: of, .. } => {
                    folded.forget(of);
                    if let Some(last) = turn.take_if(|turn| turn.turn == of) {
                        history = last.before;
                        let empty = FoldedTurn::new(of, entry.position, last.items, history.clone());
                        turn = Some(FoldedTurn { fate: Some(ItemOutcome::RolledBack(of)), ..empty });
                    }
                }
                JournalLine::GivenUp { turn: of, .. } => {
                    if let Some(turn) = turn.as_mut().filter(|turn| turn.turn == of) {
                        turn.after = StoppedTurn::Abandoned;
                    }
                }
                // Only for readers of the journal.
                JournalLine::Quiet { .. } => {}
            }
        }
        from = page.next;
    }
    Ok(Recovered { always, background, lost: folded.lost(), ..found(journal, history, turn) })
}

fn found(journal: &Arc<Journal>, history: History, turn: Option<FoldedTurn>) -> Recovered {
    let mut found = Recovered { history, ..Recovered::default() };
    let Some(turn) = turn else { return found };
    found.turns = turn.turn.number();
    found.history = turn.after();
    let fate = turn.fate();
    let Some(run) = turn.run else {
        if !matches!(fate, ItemOutcome::RolledBack(_)) {
            found.put_back = turn.items;
        }
        return found;
    };
    // Of any other turn nothing is left to resume.
    if fate.is_open() && turn.after == StoppedTurn::Resumable {
        let is_cut_off = turn.is_cut_off && matches!(fate, ItemOutcome::Interrupted(_));
        let log = TurnLog::new(journal, turn.turn, turn.before.clone(), turn.from);
        let (turn, before, log) = (turn.turn, turn.before, Arc::new(log));
        found.left = Some(LeftTurn { turn, fate, run, before, log, open: HashSet::new(), is_cut_off });
    }
    found
}
