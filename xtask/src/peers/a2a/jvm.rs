//! Agents of JVM runtimes behind A2A, as people run them: each on a scripted model, stopped in every phase of its work, with
//! our binary killed and its line cut. What the agent did, by its own log and the model server's, is held beside our receipt.

mod bench;
mod build;
mod relay;
mod scenarios;
mod script;
mod table;

use std::{path::Path, time::Instant};

use super::super::{Absent, Reach, Tally, Wanted};

use self::{bench::Bench, build::QUARKUS, script::Planned, table::Table};

/// An agent of a JVM runtime.
struct Peer {
    name: &'static str,
    /// Where its source and its pom are; beside them those that it shares with others.
    folder: &'static str,
    shares: &'static [&'static str],
    /// What Maven makes of it.
    jar: &'static str,
    /// The oldest Java that it runs on.
    java: u32,
    /// Where its server takes JSON-RPC.
    path: &'static str,
    /// The name of its tool, as its model calls it.
    tool: &'static str,
    answers: Answers,
    reach: Reach,
}

/// How its answer comes. Exhaustive: piece by piece, whole at its end, or not at all, because its server shows no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    InPieces,
    Whole,
    Unseen,
}

const PEERS: [Peer; 7] = [
    Peer {
        name: "LangChain4j 1.19.0 on a2a-java 0.3.3",
        folder: "langchain4j",
        shares: &["work", "a2a-java", "quarkus"],
        jar: QUARKUS,
        java: 17,
        path: "/",
        tool: "sleep",
        answers: Answers::InPieces,
        reach: Reach::Default,
    },
    Peer {
        name: "Spring AI 2.0.1 on spring-ai-a2a-server 0.2.0",
        folder: "spring-ai",
        shares: &["work", "a2a-java", "spring"],
        jar: "target/peer.jar",
        java: 17,
        path: "/",
        tool: "sleep",
        answers: Answers::Unseen,
        reach: Reach::All,
    },
    Peer {
        name: "Spring AI 2.0.1, its Flux, on a2a-java 0.3.3",
        folder: "spring-ai-rpc",
        shares: &["work", "a2a-java", "spring"],
        jar: "target/peer.jar",
        java: 17,
        path: "/rpc",
        tool: "sleep",
        answers: Answers::InPieces,
        reach: Reach::All,
    },
    Peer {
        name: "Semantic Kernel 1.4.2 on a2a-java 0.3.3",
        folder: "semantic-kernel",
        shares: &["work", "a2a-java", "quarkus"],
        jar: QUARKUS,
        java: 17,
        path: "/",
        tool: "tools-sleep",
        answers: Answers::InPieces,
        reach: Reach::All,
    },
    Peer {
        name: "Koog 1.1.1 on a2a-java 0.3.3",
        folder: "koog",
        shares: &["quarkus"],
        jar: QUARKUS,
        java: 17,
        path: "/",
        tool: "sleep",
        answers: Answers::InPieces,
        reach: Reach::All,
    },
    Peer {
        name: "ADK for Java 1.8.0 on a2a-java 0.3.3",
        folder: "adk-java",
        shares: &["work", "a2a-java", "quarkus"],
        jar: QUARKUS,
        java: 17,
        path: "/",
        tool: "sleep",
        answers: Answers::InPieces,
        reach: Reach::All,
    },
    Peer {
        name: "Embabel 0.3.0",
        folder: "embabel",
        shares: &["work"],
        jar: "target/embabel-1.jar",
        java: 21,
        path: "/",
        tool: "sleep",
        answers: Answers::Whole,
        reach: Reach::All,
    },
];

/// Runs every scenario that is wanted against every agent that is, as often as is wanted.
pub(super) fn peers(binary: &Path, tally: &mut Tally, wanted: &Wanted) -> anyhow::Result<()> {
    let mut table = Table::default();
    let peers = PEERS.iter().filter(|peer| wanted.reach.includes(peer.reach) && wanted.agent(peer.name));
    for peer in peers {
        let began = Instant::now();
        let built = build::jar(peer)?;
        println!("peers: {} is looked for and built ({:.1?})", peer.name, began.elapsed());
        for plan in (1..=wanted.times).map(|round| script::plan(wanted, round)) {
            match &built {
                Err(Absent(reason)) => {
                    plan.iter().for_each(|planned| tally.skip(&title(peer, planned), reason))
                }
                Ok(jar) => round(&Round { binary, peer, jar, plan: &plan }, tally, &mut table),
            }
        }
    }
    table.keep()
}

/// A round of an agent: a server that has run for long may be out of what its stops have left open.
struct Round<'a> {
    binary: &'a Path,
    peer: &'a Peer,
    jar: &'a Path,
    plan: &'a [Planned],
}

/// Starts its server, and runs what is planned.
fn round(round: &Round<'_>, tally: &mut Tally, table: &mut Table) {
    let Round { binary, peer, jar, plan } = *round;
    let mut bench = None;
    tally.take(&format!("{}: starts", peer.name), || {
        bench = Some(Bench::set_up(binary, peer, jar, plan)?);
        Ok(())
    });
    let Some(bench) = bench else { return };
    for planned in plan {
        let title = title(peer, planned);
        tally.take_stop(&title, |stops| {
            if let Some(seen) = scenarios::run(&bench, planned, stops)? {
                if let Some((row, after)) = seen.after_word {
                    stops.returned(&title, row, after);
                }
                table.note(peer.name, planned.scenario.name(), seen);
            }
            Ok(())
        });
    }
}

fn title(peer: &Peer, planned: &Planned) -> String {
    let round = if planned.round == 1 { String::new() } else { format!(", round {}", planned.round) };
    format!("{}: {}{round}", peer.name, planned.scenario.name())
}
