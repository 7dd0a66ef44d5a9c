//! Safepoint beside loops that a good engineer writes by hand: times in `cargo xtask bench`, counts in `counts`.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

mod bare;
mod children;
mod client;
mod counts;
mod cpus;
mod document;
mod durable;
mod figures;
mod goals;
mod growth;
mod lost;
mod mcp;
mod models;
#[cfg(feature = "postgres")]
mod nodes;
mod peer;
mod primitives;
mod process;
mod quiet;
mod race;
mod served;
mod serving;
mod sessions;
mod store;
mod table;
mod timing;
mod tools;
mod wire_server;
mod wires;

use crate::{cpus::Cpu, document::Document, process::allow_files, table::Table};

/// Runs the benchmarks that the arguments name, or a part of one that such a process has started.
///
/// # Errors
/// If something could not be measured.
pub fn run() -> anyhow::Result<()> {
    safepoint_testkit::mcp::serve_if_asked();
    prepare();
    let mut args = std::env::args().skip(1);
    let first = args.next();
    match first.as_deref() {
        Some(client::CLIENT) => return client::run(args),
        Some(race::SERVER) => return serve(&args.next().unwrap_or_default()),
        Some(served::READERS) => return served::readers::run(args),
        Some(durable::PINNED) => Cpu::of(&args.next().unwrap_or_default())?.pin()?,
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut next = || args.next().unwrap_or_default();
    match first.as_deref() {
        Some(wire_server::WIRES) => runtime.block_on(wire_server::serve(next().parse()?)),
        Some(durable::PINNED) => runtime.block_on(durable::pinned()),
        Some(durable::ROUNDS) => runtime.block_on(durable::rounds(&next())),
        Some(sessions::IDLE) => runtime.block_on(sessions::gather(&next())),
        Some(served::AT_REST) => runtime.block_on(served::gather(&next())),
        Some(growth::GROWTH) => runtime.block_on(growth::gather(&next())),
        _ => {
            let all: Vec<String> = first.into_iter().chain(args).collect();
            let (flags, parts): (Vec<&str>, Vec<&str>) =
                all.iter().map(String::as_str).partition(|arg| arg.starts_with("--"));
            let flag = |flag: &str| flags.contains(&flag);
            let is_known = flags.iter().all(|flag| [WRITE, NOT_QUIET].contains(flag));
            anyhow::ensure!(is_known, "there are two flags: {WRITE} and {NOT_QUIET}");
            let written = match (flag(WRITE), flag(NOT_QUIET)) {
                (false, _) => WrittenDown::Nothing,
                (true, false) => WrittenDown::IfQuiet,
                (true, true) => WrittenDown::AsItIs,
            };
            runtime.block_on(bench(&parts, written))
        }
    }
}

/// The part that is measured on a database.
const NODES: &str = "nodes";
/// Writes what was measured into the documentation too: the whole table, or the whole of what grows.
const WRITE: &str = "--write";
/// Writes it although runs of the goals were disturbed: each row says of how many that is so.
const NOT_QUIET: &str = "--not-quiet";

/// What becomes of the documentation. Exhaustive: what the flags may say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrittenDown {
    Nothing,
    IfQuiet,
    AsItIs,
}

/// Counts what a round and a stop have, and fails where it is more than is written down; or writes it down.
///
/// # Errors
/// If a count is exceeded, or something could not be counted.
pub fn counts(allocated: fn() -> [u64; 2]) -> anyhow::Result<()> {
    prepare();
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some(race::SERVER) => serve(&args.next().unwrap_or_default()),
        Some(counts::TRACED) => counts::traced_work(args),
        first => counts::run(allocated, first == Some(WRITE)),
    }
}

fn prepare() {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        // Already there: it is the same one.
    }
}

/// The model server, on this processor, in one thread.
fn serve(cpu: &str) -> anyhow::Result<()> {
    Cpu::of(cpu)?.pin()?;
    allow_files()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serving::serve())
}

/// Measures the parts whose names begin as one of these, which is all of them when there are none; all but what grows.
async fn measure(parts: &[&str]) -> anyhow::Result<Table> {
    let mut table = Table::default();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|only| part.starts_with(only));
    if wanted("rounds") {
        goals::rounds(&mut table).await?;
    }
    if wanted("stops") {
        goals::stops(&mut table).await?;
    }
    if wanted("crowd") {
        goals::crowd(&mut table).await?;
    }
    if wanted("tools") {
        goals::tools(&mut table).await?;
    }
    if wanted("durable") {
        durable::measure(&mut table).await?;
    }
    if wanted("children") {
        children::measure(&mut table).await?;
    }
    if wanted("sessions") {
        sessions::measure(&mut table).await?;
    }
    if wanted("served") {
        served::measure(&mut table).await?;
    }
    if wanted("primitives") {
        primitives::measure(&mut table);
    }
    if wanted("wires") {
        wires::measure(&mut table).await?;
    }
    if wanted("lost") {
        lost::measure(&mut table).await?;
    }
    if wanted("mcp") {
        mcp::measure(&mut table).await?;
    }
    if wanted("store") {
        store::measure(&mut table).await?;
    }
    // It needs a database: only where it is named.
    if parts.contains(&NODES) {
        #[cfg(feature = "postgres")]
        nodes::measure(&mut table).await?;
        #[cfg(not(feature = "postgres"))]
        anyhow::bail!("`{NODES}` needs the feature `postgres`");
    }
    Ok(table)
}

/// Measures these parts, prints what was measured, and writes it down.
async fn bench(parts: &[&str], written: WrittenDown) -> anyhow::Result<()> {
    let table = measure(parts).await?;
    println!("{table}");
    let (document, mut sections) = (Document::of_this_project(), Vec::new());
    // A table of some rows would take the place of the whole one.
    let is_written = written != WrittenDown::Nothing;
    if parts.is_empty() {
        sections = vec![("goals", table.goals()), ("parts", table.parts())];
    }
    // What needs a database has its own table.
    if parts == [NODES] {
        sections = vec![(NODES, table.parts())];
    }
    let named = parts.iter().find_map(|part| part.strip_prefix("growth"));
    if let Some(only) = named.or(parts.is_empty().then_some("")) {
        let is_whole = only.is_empty();
        let folder = if is_written { document.pictures() } else { std::env::temp_dir().join("growth") };
        let grown = growth::measure(only.trim_start_matches('-'), &folder).await?;
        println!("{grown}\nThe plots are in {}", folder.display());
        sections.extend(is_whole.then_some(("growth", grown)));
    }
    if is_written && sections.is_empty() {
        eprintln!("nothing was written: a part alone does not take the place of the whole table");
    } else if is_written {
        let busy = table.disturbed();
        anyhow::ensure!(
            busy.is_empty() || written == WrittenDown::AsItIs,
            "nothing was written, since something else used a processor while these were measured: {}. Take them again on a \
             quiet machine, or add {NOT_QUIET}",
            busy.join("; ")
        );
        let measured = document::measured();
        let dated = sections.into_iter().map(|(name, rows)| (name, format!("{measured}\n\n{rows}")));
        document.write(&dated.collect::<Vec<_>>())?;
    }
    Ok(())
}
