//! What is known of a command from its start, and what its holder says of its end.

use std::time::SystemTime;

use super::{
    report::{CommandReport, Containment, Exit, Hold, ProcessRecord, TreeMember},
    wire::Account,
};

/// What is known of a command from its start.
#[derive(Clone, Debug)]
pub(super) struct Started {
    pub(super) record: ProcessRecord,
    pub(super) at: SystemTime,
    pub(super) containment: Containment,
}

/// What a holder has to say. Exhaustive: a job's command may end before its tree does.
#[derive(Debug)]
pub(super) enum End {
    /// The command ended; these continue, as was declared.
    Command { exit: Exit, running: Vec<TreeMember>, at: SystemTime },
    /// The tree ended, or survived.
    Tree(Box<Account>),
}

impl Started {
    /// The account of what came of it.
    pub(super) fn report(&self, label: &str, end: End) -> CommandReport {
        let (account, background) = match end {
            End::Command { exit, running, at } => {
                (Account { exit, ended_at: at, ..Account::of(Hold::Kept) }, running)
            }
            End::Tree(account) => (*account, Vec::new()),
        };
        CommandReport {
            record: self.record.clone(),
            label: label.to_owned(),
            started_at: self.at,
            ended_at: account.ended_at,
            exit: account.exit,
            rungs: account.rungs,
            left_behind: account.left_behind,
            background,
            survivors: account.survivors,
            containment: self.containment,
            hold: account.hold,
        }
    }
}
