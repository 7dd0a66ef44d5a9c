//! Recovery: the conversation and the turn that was left open, folded from the records.

use std::{collections::HashSet, sync::Arc};

use safepoint_scope::Code;

use super::{
    InheritedTurn, Journal, JournalLine, PAGE, TurnLog,
    checkpoint::{self, EVERY, Folded, FoundCheckpoint, Sides},
    look::looked,
    turn_log::restore,
};
use crate::{
    contract::{
        log::{self, Log},
        store::{self, Chain, JournalEntry, Write},
    },
    run::{machine::Machine, shared::AllowList},
    session::{
        lost_runs::{FoldedBackground, LostRun, background_begun},
        outcome::ItemOutcome,
        stop::StoppedTurn,
    },
    value::{
        event::Fact,
        history::{History, Message},
        ids::{ApprovalId, Path, RunId, TurnId},
        receipt::Ending,
    },
};

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
    /// What keeps the next owner from reading all of this again, if that is much.
    pub(in crate::session) checkpoint: Option<Write>,
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
    /// Whether only the end of its process, intended or not, ended it early, or a withdrawal of its questions did.
    pub(in crate::session) left_open: InheritedTurn,
    /// The items of the inbox up to this number wait for a later one. `None`: its end was not recorded, or by an early release.
    pub(in crate::session) holds: Option<u64>,
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
    holds: Option<u64>,
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
            holds: None,
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

/// Folds the records: from the newest checkpoint on if it is one of this journal, else all of them. An unreadable record is an
/// error that says where, and nothing is changed.
pub(in crate::session) async fn recover(journal: &Arc<Journal>) -> Result<Recovered, store::Error> {
    Ok(fold(journal).await?.recovered(journal))
}

async fn fold(journal: &Journal) -> Result<Fold, store::Error> {
    if journal.head() < EVERY {
        return Fold::default().read_on(journal).await;
    }
    // No other owner appends to it any more.
    let row = looked(journal.store().open(journal.session())).await?;
    if let Some(found) = checkpoint::newest(journal, row.head).await {
        let fold = Fold::from(found).read_on(journal).await;
        if let Ok(fold) = fold
            && (fold.position, fold.chain) == (row.head, Some(row.chain))
        {
            return Ok(fold);
        }
    }
    Fold::of_all(journal).read_on(journal).await
}

/// A turn that is over, and the conversation after it, closed.
pub(super) struct LastTurn {
    pub(super) turn: TurnId,
    pub(super) history: History,
    /// Then the conversation is that before it.
    pub(super) is_rolled_back: bool,
    /// Whether no record that may follow changes what it says: it is not resumed, and not rolled back.
    pub(super) is_final: bool,
}

/// The records so far.
#[derive(Default)]
pub(super) struct Fold {
    /// Where the next one stands.
    position: u64,
    /// The checksum of the last one; `None` where it is not needed.
    chain: Option<Chain>,
    history: History,
    turn: Option<FoldedTurn>,
    always: Arc<AllowList>,
    background: HashSet<Path>,
    runs: FoldedBackground,
    /// Where the last checkpoint stands that was passed, believed or not: another one is due later than that.
    passed: u64,
    /// The checkpoint that this began from.
    before: Option<FoundCheckpoint>,
    /// The next one.
    due: Option<Folded>,
}

impl From<FoundCheckpoint> for Fold {
    fn from(before: FoundCheckpoint) -> Self {
        let Folded { at, chain, history, sides } = before.folded.clone();
        let Sides { always, background, runs } = sides;
        let always = Arc::new(AllowList::from(always));
        let chain = Some(chain);
        Self {
            position: at,
            chain,
            history,
            always,
            background,
            runs,
            before: Some(before),
            ..Self::default()
        }
    }
}

impl Fold {
    fn of_all(journal: &Journal) -> Self {
        Self { chain: Some(Chain::of(journal.session())), ..Self::default() }
    }

    /// Folds what the store has from here on.
    async fn read_on(mut self, journal: &Journal) -> Result<Self, store::Error> {
        let read = self.before.as_mut().map(|before| std::mem::take(&mut before.end)).unwrap_or_default();
        let until = read.front().map(|entry| entry.position);
        let mut from = Some(self.position);
        while let Some(position) = from.filter(|from| until.is_none_or(|until| *from < until)) {
            let most =
                until.map_or(PAGE, |until| usize::try_from(until - position).unwrap_or(PAGE).min(PAGE));
            let page = looked(journal.store().read(journal.session(), position, most)).await?;
            page.entries.into_iter().try_for_each(|entry| self.pass(journal, entry))?;
            from = page.next;
        }
        for entry in read {
            // Those before it stand in the checkpoint.
            if entry.position >= self.position {
                self.pass(journal, entry)?;
            }
        }
        Ok(self)
    }

    /// Folds the next record.
    fn pass(&mut self, journal: &Journal, entry: JournalEntry) -> Result<(), store::Error> {
        let damaged = |damage| store::Error::Damaged(journal.session().clone(), damage);
        let position = entry.position;
        let record = entry.record.map_err(damaged)?;
        if !record.is_checkpoint() {
            self.take(position, JournalLine::read(position, &record).map_err(damaged)?);
        }
        self.chain = self.chain.map(|chain| chain.then(position, &record));
        self.position = position + 1;
        if record.is_checkpoint() {
            self.passed = position;
            if let Some(before) = self.before.as_mut().filter(|before| before.position == position) {
                before.record = Some(record);
            }
        }
        Ok(())
    }

    pub(super) fn take(&mut self, position: u64, line: JournalLine) {
        let of = |turn: TurnId| move |folded: &&mut FoldedTurn| folded.turn == turn;
        match line {
            JournalLine::Begun { history, notes, .. } | JournalLine::BegunMore { history, notes, .. } => {
                self.history = history.onto(&self.history);
                notes.into_iter().for_each(|note| self.history.push(Message::User(note.into())));
            }
            JournalLine::Planned { turn: next, items, .. } => self.begin(position, next, items),
            JournalLine::Fact { turn, path, fact, grown, .. } => {
                self.always.take(&fact);
                self.background.extend(background_begun(&fact));
                self.runs.take(turn, &path, &fact);
                if let Some(turn) = self.turn.as_mut().filter(of(turn)).filter(|_| path.is_root()) {
                    // A resumed turn is running again.
                    (turn.fate, turn.holds) = (None, None);
                    turn.take(restore(&turn.before, fact, grown));
                }
            }
            JournalLine::Ended { turn, fate, holds, .. } => {
                if let Some(turn) = self.turn.as_mut().filter(of(turn)) {
                    (turn.fate, turn.holds) = (Some(fate), holds);
                }
            }
            JournalLine::Forgotten { turn, .. } => {
                self.runs.forget(turn);
                if let Some(last) = self.turn.take_if(|last| last.turn == turn) {
                    self.history = last.before;
                    let empty = FoldedTurn::new(turn, position, last.items, self.history.clone());
                    self.turn = Some(FoldedTurn { fate: Some(ItemOutcome::RolledBack(turn)), ..empty });
                }
            }
            JournalLine::GivenUp { turn, .. } => {
                if let Some(turn) = self.turn.as_mut().filter(of(turn)) {
                    turn.after = StoppedTurn::Abandoned;
                }
            }
            // Only for readers of the journal.
            JournalLine::Quiet { .. } => {}
        }
    }

    /// A turn begins at `position`: what was before it can be kept.
    fn begin(&mut self, position: u64, next: TurnId, items: Vec<u64>) {
        if let Some(last) = self.turn.take() {
            self.history = last.after();
        }
        let mut before = self.history.clone();
        before.close();
        let last = self.before.as_ref().map_or(0, |before| before.folded.at);
        // It stands for more records than it says things again that the one before it said. So the size of all of them grows as the
        // journal does.
        let repeated = self.always.entries() + self.background.len() + self.runs.entries();
        if let Some(chain) = self.chain
            && Folded::may_be_due(position, last.max(self.passed), self.due.as_ref())
            && position - last >= repeated as u64
        {
            let (background, runs) = (self.background.clone(), self.runs.clone());
            let sides = Sides { always: self.always.state(), background, runs };
            self.due = Some(Folded { at: position, chain, history: before.clone(), sides });
        }
        self.turn = Some(FoldedTurn::new(next, position, items, before));
    }

    /// The last turn, if it has ended or waits. `is_over`: another one begins, so that it has, if it had begun at all.
    pub(super) fn last_turn(&self, is_over: bool) -> Option<LastTurn> {
        let turn = self.turn.as_ref()?;
        let has_ended = turn.fate.is_some() || turn.ending.is_some();
        let is_over = is_over && turn.run.is_some();
        if !(has_ended || is_over) {
            return None;
        }
        let mut history = turn.after();
        history.close();
        let is_rolled_back = matches!(turn.fate, Some(ItemOutcome::RolledBack(_)));
        // What was rolled back is forgotten by another record, which leaves nothing of the run.
        let is_forgotten = is_rolled_back && turn.run.is_none();
        let is_final = is_over || is_forgotten || matches!(turn.fate, Some(ItemOutcome::Completed(_)));
        Some(LastTurn { turn: turn.turn, history, is_rolled_back, is_final })
    }

    fn recovered(self, journal: &Arc<Journal>) -> Recovered {
        let Self { history, turn, always, background, runs, before, due, .. } = self;
        let checkpoint = due.and_then(|due| due.write(journal.session(), before.as_ref()));
        Recovered { always, background, checkpoint, lost: runs.lost(), ..found(journal, history, turn) }
    }
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
        let left_open = if is_cut_off { InheritedTurn::CutOff } else { InheritedTurn::Over };
        let log = TurnLog::new(journal, turn.turn, turn.before.clone(), turn.from);
        let (turn, before, log, holds) = (turn.turn, turn.before, Arc::new(log), turn.holds);
        found.left = Some(LeftTurn { turn, fate, run, before, log, open: HashSet::new(), left_open, holds });
    }
    found
}

#[cfg(test)]
mod tests;
