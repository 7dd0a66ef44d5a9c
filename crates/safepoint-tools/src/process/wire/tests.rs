//! The golden file of what a runtime and the keeper of a command say to each other, and of reports. `Account` and
//! `SpawnOrder` are in their messages.

use std::time::UNIX_EPOCH;

use safepoint_golden::{Golden, each};

use super::*;
use crate::process::report::{CommandReport, ProcessRecord, Rung};

fn at(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_767_225_600_000 + ms)
}

fn member() -> TreeMember {
    TreeMember { pid: 77, start: 1234, name: "sleep".into() }
}

fn exits() -> Vec<Exit> {
    each!(Exit {
        Exit::Code(_) => Exit::Code(3);
        Exit::Signal(_) => Exit::Signal(15);
        Exit::Unknown => Exit::Unknown;
    })
}

fn containments() -> Vec<Containment> {
    each!(Containment {
        Containment::Cgroup => Containment::Cgroup;
        Containment::Subreaper => Containment::Subreaper;
        Containment::ProcessGroup => Containment::ProcessGroup;
    })
}

fn rungs() -> Vec<Climbed> {
    let rungs = each!(Rung {
        Rung::Interrupt => Rung::Interrupt;
        Rung::Terminate => Rung::Terminate;
        Rung::Kill => Rung::Kill;
    });
    rungs.into_iter().map(|rung| Climbed { rung, at: at(5) }).collect()
}

fn holds() -> Vec<Hold> {
    each!(Hold {
        Hold::Kept => Hold::Kept;
        Hold::GuardLost => Hold::GuardLost;
        Hold::KeeperLost => Hold::KeeperLost;
        Hold::LeaseOver => Hold::LeaseOver;
    })
}

fn stages() -> Vec<Stage> {
    each!(Stage {
        Stage::Cwd => Stage::Cwd;
        Stage::Program => Stage::Program;
        Stage::Lease => Stage::Lease;
    })
}

fn backgrounds() -> Vec<Background> {
    each!(Background {
        Background::Kill => Background::Kill;
        Background::Keep => Background::Keep;
    })
}

fn groups() -> Vec<ControlGroups> {
    each!(ControlGroups {
        ControlGroups::Try => ControlGroups::Try;
        ControlGroups::LeaveAlone => ControlGroups::LeaveAlone;
    })
}

fn orders() -> Vec<Order> {
    let ms = Duration::from_millis;
    let spawn = |cwd: Option<OsString>| SpawnOrder {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), "ls".into()],
        cwd,
        env: vec![("A".into(), "b".into())],
        background: Background::Kill,
        left_behind: ms(1500),
        kill: ms(500),
        groups: ControlGroups::Try,
    };
    let rungs = Rungs { interrupt: ms(2000), terminate: ms(2000), kill: ms(500) };
    each!(Order {
        Order::Spawn(_) =>
            Order::Spawn(Box::new(spawn(None))), Order::Spawn(Box::new(spawn(Some("/tmp".into()))));
        Order::Stop(_) => Order::Stop(rungs), Order::Stop(Rungs::kill(ms(500)));
    })
}

fn account() -> Account {
    Account {
        exit: Exit::Code(0),
        ended_at: at(10),
        rungs: rungs(),
        left_behind: vec![member()],
        survivors: vec![member()],
        hold: Hold::Kept,
    }
}

fn words() -> Vec<Word> {
    let started =
        |group| Word::Started { pid: 77, start: 1234, containment: Containment::Cgroup, group, at: at(1) };
    each!(Word {
        Word::Ready(_) => Word::Ready(member());
        Word::Started { .. } => started(None), started(Some("/sys/fs/cgroup/a".into()));
        Word::Refused { .. } => Word::Refused { stage: Stage::Program, errno: 2 };
        Word::Exited { .. } => Word::Exited { exit: Exit::Signal(9), running: vec![member()], at: at(9) };
        Word::Ended(_) => Word::Ended(Box::new(account()));
    })
}

fn report() -> CommandReport {
    CommandReport {
        record: ProcessRecord { run: "run_1".into(), pid: 77, start: 1234 },
        label: "sleep 100".into(),
        started_at: at(1),
        ended_at: at(10),
        exit: Exit::Signal(2),
        rungs: rungs(),
        left_behind: vec![member()],
        background: vec![member()],
        survivors: vec![member()],
        containment: Containment::Cgroup,
        hold: Hold::LeaseOver,
    }
}

#[test]
fn what_a_runtime_and_a_keeper_say() {
    let frames = [frame(&orders()[2]).unwrap(), frame(&words()[0]).unwrap()];
    let shown = |frame: Vec<u8>| frame.escape_ascii().to_string();
    Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/processes.txt")
        .json("order", orders())
        .json("word", words())
        .lines("frame", frames.map(shown))
        .json("background", backgrounds())
        .json("control groups", groups())
        .json("stage", stages())
        .json("exit", exits())
        .json("containment", containments())
        .json("rung", rungs())
        .json("hold", holds())
        .json("report", [report()])
        .check();
}
