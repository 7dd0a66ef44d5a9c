//! Leases as pure states and steps: two nodes, two sessions, and every order of what may happen (S7.13, S7.14, S7.64).
//!
//! Time is counted in ticks. A node's clock may miss one tick in each lease; a beat and its answer may take any time or be lost; an
//! append may arrive at any later time; a node may do nothing for any time. Only its guard always acts.

/// How long a lease is, in ticks.
pub(super) const LEASE: i8 = 2;
/// For longer than this a lease must be over before its node is buried: by then a clock that is behind by a tick has ended it, and an
/// effect is dead by the tick after that.
pub(super) const MARGIN: i8 = 1;
/// How many times sessions are taken at most, both together.
const MOST_TAKES: u8 = 2;

/// The rules that keep two owners apart; each can be taken out.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseRules {
    pub(super) margin: i8,
    /// A write is compared with the newest epoch.
    pub(super) checks_epoch: bool,
    /// A write is compared with the holder.
    pub(super) checks_holder: bool,
    /// An effect begins only under a lease that is valid by the node's clock.
    pub(super) checks_lease: bool,
}

pub(super) const RULES: LeaseRules =
    LeaseRules { margin: MARGIN, checks_epoch: true, checks_holder: true, checks_lease: true };

/// A beat on its way. `Asked` and `Done` have its age by the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    None,
    Asked(i8),
    Done(i8),
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelNode {
    /// How long its lease is valid by the store's clock; negative: how long it has been over.
    pub(super) stored: i8,
    /// The same by its own.
    pub(super) left: i8,
    beat: Beat,
    /// How many ticks ago its clock missed one.
    missed: i8,
    pub(super) is_buried: bool,
    /// It knows that it holds nothing.
    is_lost: bool,
}

/// What a node does with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Free,
    Held,
    Announced,
    Effect,
}

/// An append on its way: under the lease that the node has now, or under one that it had before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Append {
    None,
    Newest,
    Older,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelSession {
    pub(super) holder: Option<u8>,
    pub(super) at: [(Stage, Append); 2],
}

/// Two nodes and two sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeaseModel {
    pub(super) nodes: [ModelNode; 2],
    pub(super) sessions: [ModelSession; 2],
    /// How many times one was taken.
    takes: u8,
}

/// Something happens. `usize`s are a node, then a session.
#[derive(Clone, Copy, Debug)]
pub(super) enum ModelStep {
    /// Time passes; the clocks of these nodes miss it.
    Tick([bool; 2]),
    BeatAsked(usize),
    BeatDone(usize),
    BeatAnswered(usize),
    BeatLost(usize),
    Bury(usize),
    Acquire(usize, usize),
    AppendAsked(usize, usize),
    /// The append arrives; whether its answer does too.
    AppendDone(usize, usize, bool),
    AppendLost(usize, usize),
    Begin(usize, usize),
    End(usize, usize),
    Release(usize, usize),
}

impl LeaseModel {
    pub(super) fn new() -> Self {
        let node = ModelNode {
            stored: LEASE,
            left: LEASE,
            beat: Beat::None,
            missed: LEASE,
            is_buried: false,
            is_lost: false,
        };
        let session = ModelSession { holder: None, at: [(Stage::Free, Append::None); 2] };
        Self { nodes: [node; 2], sessions: [session; 2], takes: 0 }
    }

    /// Every step that may come next.
    pub(super) fn steps(&self, rules: LeaseRules) -> Vec<ModelStep> {
        let mut steps = Vec::new();
        for missed in [[false, false], [false, true], [true, false], [true, true]] {
            let may_miss = |node: usize| !missed[node] || self.nodes[node].missed >= LEASE;
            if may_miss(0) && may_miss(1) {
                steps.push(ModelStep::Tick(missed));
            }
        }
        for (n, node) in self.nodes.iter().enumerate() {
            match node.beat {
                Beat::None if !node.is_lost => steps.push(ModelStep::BeatAsked(n)),
                Beat::None => {}
                Beat::Asked(_) => steps.extend([ModelStep::BeatDone(n), ModelStep::BeatLost(n)]),
                Beat::Done(_) | Beat::Refused => {
                    steps.extend([ModelStep::BeatAnswered(n), ModelStep::BeatLost(n)]);
                }
            }
            if !node.is_buried && node.stored < -rules.margin {
                steps.push(ModelStep::Bury(n));
            }
            for s in 0..self.sessions.len() {
                self.steps_of((n, s), rules, &mut steps);
            }
        }
        steps
    }

    fn steps_of(&self, (n, s): (usize, usize), rules: LeaseRules, steps: &mut Vec<ModelStep>) {
        let (node, session) = (&self.nodes[n], &self.sessions[s]);
        let (stage, append) = session.at[n];
        if append != Append::None {
            steps.extend([true, false].map(|is_answered| ModelStep::AppendDone(n, s, is_answered)));
            steps.push(ModelStep::AppendLost(n, s));
        }
        if node.is_lost {
            return;
        }
        match stage {
            Stage::Free if session.holder.is_none() && !node.is_buried && self.takes < MOST_TAKES => {
                steps.push(ModelStep::Acquire(n, s));
            }
            Stage::Free => {}
            Stage::Held => {
                if append == Append::None && node.left > 0 {
                    steps.push(ModelStep::AppendAsked(n, s));
                }
                if session.holder == Some(n as u8) {
                    steps.push(ModelStep::Release(n, s));
                }
            }
            Stage::Announced if node.left > 0 || !rules.checks_lease => steps.push(ModelStep::Begin(n, s)),
            Stage::Announced => {}
            Stage::Effect => steps.push(ModelStep::End(n, s)),
        }
    }

    /// What is so after it, or the promise that it breaks.
    pub(super) fn after(mut self, step: ModelStep, rules: LeaseRules) -> Result<Self, &'static str> {
        match step {
            ModelStep::Tick(missed) => self.tick(missed),
            ModelStep::BeatAsked(n) => self.nodes[n].beat = Beat::Asked(0),
            ModelStep::BeatDone(n) => self.nodes[n].beat = self.beat_done(n),
            ModelStep::BeatAnswered(n) => self.beat_answered(n),
            ModelStep::BeatLost(n) => self.nodes[n].beat = Beat::None,
            ModelStep::Bury(n) => self.bury(n),
            ModelStep::Acquire(n, s) => self.acquire(n, s),
            ModelStep::AppendAsked(n, s) => self.sessions[s].at[n].1 = Append::Newest,
            ModelStep::AppendDone(n, s, is_answered) => self.append_done((n, s), is_answered, rules)?,
            ModelStep::AppendLost(n, s) => self.sessions[s].at[n].1 = Append::None,
            ModelStep::Begin(n, s) => self.sessions[s].at[n].0 = Stage::Effect,
            ModelStep::End(n, s) => self.sessions[s].at[n].0 = Stage::Held,
            ModelStep::Release(n, s) => {
                self.sessions[s].holder = None;
                self.sessions[s].at[n].0 = Stage::Free;
            }
        }
        self.forgets();
        self.holds().map(|()| self)
    }

    fn tick(&mut self, missed: [bool; 2]) {
        for (n, node) in self.nodes.iter_mut().enumerate() {
            node.stored = (node.stored - 1).max(-MARGIN - 1);
            if node.left == 0 {
                // The guard needs no node that runs.
                let at = self.sessions.iter_mut().map(|session| &mut session.at[n].0);
                at.filter(|stage| **stage == Stage::Effect).for_each(|stage| *stage = Stage::Held);
            }
            if missed[n] {
                node.missed = 0;
                continue;
            }
            node.missed = (node.missed + 1).min(LEASE);
            node.left = (node.left - 1).max(0);
            node.beat = match node.beat {
                // Its answer would say nothing new.
                Beat::Asked(age) | Beat::Done(age) if age + 1 >= LEASE => Beat::None,
                Beat::Asked(age) => Beat::Asked(age + 1),
                Beat::Done(age) => Beat::Done(age + 1),
                beat @ (Beat::None | Beat::Refused) => beat,
            };
        }
    }

    fn beat_done(&mut self, n: usize) -> Beat {
        let node = &mut self.nodes[n];
        match node.beat {
            Beat::Asked(_) if node.is_buried => Beat::Refused,
            Beat::Asked(age) => {
                node.stored = LEASE;
                Beat::Done(age)
            }
            beat @ (Beat::None | Beat::Done(_) | Beat::Refused) => beat,
        }
    }

    fn beat_answered(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        match std::mem::replace(&mut node.beat, Beat::None) {
            // It counts from before it asked.
            Beat::Done(age) => {
                node.left = node.left.max(LEASE - age);
            }
            Beat::Refused => {
                node.is_lost = true;
                self.sessions.iter_mut().for_each(|session| session.at[n].0 = Stage::Free);
            }
            Beat::None | Beat::Asked(_) => {}
        }
    }

    fn bury(&mut self, n: usize) {
        self.nodes[n].is_buried = true;
        for session in &mut self.sessions {
            session.holder = session.holder.filter(|holder| usize::from(*holder) != n);
        }
    }

    fn acquire(&mut self, n: usize, s: usize) {
        let session = &mut self.sessions[s];
        session.holder = u8::try_from(n).ok();
        self.takes += 1;
        let before = session.at[n].1;
        session.at[n] = (Stage::Held, if before == Append::None { Append::None } else { Append::Older });
    }

    fn append_done(
        &mut self,
        (n, s): (usize, usize),
        is_answered: bool,
        rules: LeaseRules,
    ) -> Result<(), &'static str> {
        let session = &mut self.sessions[s];
        let (stage, append) = session.at[n];
        let (is_holder, is_newest) = (session.holder.map(usize::from) == Some(n), append == Append::Newest);
        let is_taken = (is_holder || !rules.checks_holder) && (is_newest || !rules.checks_epoch);
        if is_taken && !(is_holder && is_newest) {
            return Err("one that is not the owner writes");
        }
        let next = match (is_answered, is_taken) {
            (true, true) if stage == Stage::Held => Stage::Announced,
            // What was sent under an older lease says nothing of this one.
            (true, false) if stage != Stage::Effect && is_newest => Stage::Free,
            (true | false, _) => stage,
        };
        session.at[n] = (next, Append::None);
        Ok(())
    }

    /// What can matter no more is as if it had never been: that keeps the states few.
    fn forgets(&mut self) {
        for node in &mut self.nodes {
            if node.is_buried {
                node.stored = 0;
            }
            if node.is_lost {
                (node.left, node.missed, node.beat) = (0, 0, Beat::None);
            }
        }
    }

    /// What is promised of every state.
    fn holds(&self) -> Result<(), &'static str> {
        for session in &self.sessions {
            let effects = session.at.iter().filter(|(stage, _)| *stage == Stage::Effect).count();
            if effects > 1 {
                return Err("two effects of one session are alive");
            }
            let other = session.holder.map(|holder| session.at[1 - usize::from(holder)].0);
            if other == Some(Stage::Effect) {
                return Err("a session has an owner while an effect of another one is alive");
            }
            let is_buried = |holder: u8| self.nodes[usize::from(holder)].is_buried;
            if session.holder.is_some_and(is_buried) {
                return Err("a buried node holds a session");
            }
        }
        Ok(())
    }

    /// The state as one number. Two that differ only in which node or session is which have the same: what follows is the same.
    pub(super) fn number(&self) -> u64 {
        let [a, b] = self.sessions;
        let swapped = |session: ModelSession| ModelSession {
            holder: session.holder.map(|holder| 1 - holder),
            at: [session.at[1], session.at[0]],
        };
        let others = [swapped(a), swapped(b)];
        let nodes = [self.nodes[1], self.nodes[0]];
        [
            *self,
            Self { sessions: [b, a], ..*self },
            Self { nodes, sessions: others, ..*self },
            Self { nodes, sessions: [others[1], others[0]], ..*self },
        ]
        .map(|state| state.own_number())
        .into_iter()
        .min()
        .unwrap_or_default()
    }

    /// No two states have the same.
    fn own_number(&self) -> u64 {
        let mut number = 0_u64;
        let mut put = |value: u64, values: u64| number = number * values + value;
        let small = |value: i8| u64::try_from(value).unwrap_or_default();
        for node in &self.nodes {
            put(small(node.stored + MARGIN + 1), small(LEASE + MARGIN + 2));
            put(small(node.left), small(LEASE + 1));
            let beat = match node.beat {
                Beat::None => 0,
                Beat::Refused => 1,
                Beat::Asked(age) => 2 + small(age),
                Beat::Done(age) => 2 + small(LEASE + age),
            };
            put(beat, 2 + 2 * small(LEASE));
            put(small(node.missed), small(LEASE + 1));
            put(u64::from(node.is_buried), 2);
            put(u64::from(node.is_lost), 2);
        }
        for session in &self.sessions {
            put(session.holder.map_or(0, |holder| u64::from(holder) + 1), 3);
            for (stage, append) in session.at {
                put(stage as u64, 4);
                put(append as u64, 3);
            }
        }
        put(u64::from(self.takes), u64::from(MOST_TAKES) + 1);
        number
    }
}
