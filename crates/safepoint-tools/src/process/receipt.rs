//! A command's account as a row of the run's receipt.

use safepoint::receipt;

use super::report::{CommandReport, Exit, Hold, TreeMember};
use crate::limits;

impl From<&CommandReport> for receipt::ProcessReport {
    fn from(report: &CommandReport) -> Self {
        let (pid, containment) = (report.pid().unsigned_abs(), report.containment.to_string());
        let mut row = Self::new(pid, report.label.clone(), ended(report), containment);
        row.signals = report.rungs.iter().map(|climbed| climbed.rung.to_string()).collect();
        row.left_behind = names(&report.left_behind);
        row.survivors = names(&report.survivors);
        row
    }
}

fn ended(report: &CommandReport) -> String {
    let end = match (report.exit, report.background.is_empty()) {
        (exit, false) => format!("{exit}, with {} left in the background", report.background.len()),
        (Exit::Unknown, true) if !report.survivors.is_empty() => "still alive after SIGKILL".to_owned(),
        (exit, true) => exit.to_string(),
    };
    match report.hold {
        Hold::Kept => end,
        Hold::GuardLost => format!("{end}, killed because its guard died"),
        Hold::KeeperLost => format!("{end}, killed because its keeper died"),
        Hold::LeaseOver => format!("{end}, killed because the lease of its session ended"),
    }
}

/// Names, as many as a person would read, and how many more there are.
#[must_use]
pub fn names(members: &[TreeMember]) -> Vec<String> {
    let mut names: Vec<_> = members.iter().take(limits::NAMED_PROCESSES).map(ToString::to_string).collect();
    if members.len() > names.len() {
        names.push(format!("and {} more", members.len() - names.len()));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_counted() {
        let member = |pid| TreeMember { pid, start: 1, name: "sleep".into() };
        let members: Vec<_> = (1..=70).map(member).collect();
        let reported = names(&members);
        assert_eq!(
            (reported.len(), reported[63].as_str(), reported[64].as_str()),
            (65, "sleep (pid 64)", "and 6 more")
        );
        assert_eq!(names(&members[..64]).len(), 64);
    }
}
