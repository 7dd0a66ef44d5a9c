//! A command's account as a row of the run's receipt.

use safepoint::receipt;

use super::report::{Exit, Hold, Member, ProcessReport};

impl From<&ProcessReport> for receipt::ProcessReport {
    fn from(report: &ProcessReport) -> Self {
        Self {
            pid: report.pid().unsigned_abs(),
            label: report.label.clone(),
            ended: ended(report),
            signals: report.rungs.iter().map(|climbed| climbed.rung.to_string()).collect(),
            left_behind: names(&report.left_behind),
            survivors: names(&report.survivors),
            containment: report.containment.to_string(),
        }
    }
}

fn ended(report: &ProcessReport) -> String {
    let end = match (report.exit, report.background.is_empty()) {
        (exit, false) => format!("{exit}, with {} left in the background", report.background.len()),
        (Exit::Unknown, true) if !report.survivors.is_empty() => "still alive after SIGKILL".to_owned(),
        (exit, true) => exit.to_string(),
    };
    match report.hold {
        Hold::Kept => end,
        Hold::GuardLost => format!("{end}, killed because its guard died"),
        Hold::KeeperLost => format!("{end}, killed because its keeper died"),
    }
}

fn names(members: &[Member]) -> Vec<String> {
    members.iter().map(ToString::to_string).collect()
}
