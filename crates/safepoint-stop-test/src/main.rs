//! `stop-test`: what does the stop of an agent really do?

use std::{
    fs,
    io::{self, IsTerminal as _, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use futures_util::{
    StreamExt as _,
    future::{Either, select},
    stream,
};
use safepoint_stop_test::{
    CONTROL, Guard, Report, RequestFile, Row, SCENARIOS, Scenario, ScreenTexts, StageError, Target, Trial,
    UNPLAYED, Verdict, VerdictLimits, play,
};
use tokio::signal::unix::{SignalKind, signal};

/// Stops an agent at each moment where stops fail, and says what really ended.
#[derive(Debug, Parser)]
#[command(version, after_help = HELP)]
struct Args {
    /// `program:CMD`, a command that answers the prompt that is its last argument; `terminal:CMD`, a program with a screen;
    /// `acp:CMD`, an agent of the Agent Client Protocol; `a2a:CMD`, a server of Agent2Agent on the port in `$PORT`; `responses:CMD`, one
    /// of OpenAI's Responses; `http:CMD`, any endpoint that streams, asked as `--request` says; `mcp:CMD`, a server of tools; `adapter:CMD`,
    /// a library, by a small program.
    target: Target,
    /// Only this scenario, by its name or number; may be said again.
    #[arg(long, value_name = "SCENARIO", value_parser = scenario)]
    only: Vec<Vec<Scenario>>,
    /// Only this way to stop, also one that is not tried without being named; may be said again.
    #[arg(long, value_name = "WAY")]
    way: Vec<String>,
    /// How often each is repeated.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
    /// How many trials run beside each other.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    /// The target offers its model no tools.
    #[arg(long)]
    no_tools: bool,
    /// A folder whose files the target's home has; `{OPENAI_BASE_URL}` and such in a file are replaced.
    #[arg(long, value_name = "FOLDER")]
    home: Option<PathBuf>,
    /// A variable of the target's environment, `NAME=VALUE`; may be said again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// A header of each request to a server, `NAME=VALUE`; may be said again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    header: Vec<(String, String)>,
    /// How an endpoint is asked, for `http:CMD`; the guide shows such a file.
    #[arg(long, value_name = "FILE", value_parser = request)]
    request: Option<RequestFile>,
    /// What a screen shows when it takes input; without it, it does when it has not changed for half a second.
    #[arg(long, value_name = "TEXT")]
    ready: Option<String>,
    /// What a screen shows below a message only once it takes input again: then control is back; without it, the same as `--ready`.
    #[arg(long, value_name = "TEXT")]
    free: Option<String>,
    /// What a screen shows below a message only while the program works: then control is back when it is gone.
    #[arg(long, value_name = "TEXT")]
    busy: Option<String>,
    /// A word that a screen shows when it was stopped, in any case; may be said again; without it: stopped, cancelled, canceled,
    /// interrupted, aborted.
    #[arg(long, value_name = "TEXT")]
    stopped: Vec<String>,
    /// What a screen shows when it asks whether a command may run.
    #[arg(long, value_name = "TEXT")]
    asks: Option<String>,
    /// The keys that say yes to that, where the question is not the moment of the stop.
    #[arg(long, value_name = "KEYS", requires = "asks")]
    allow: Option<String>,
    /// Exit 1 if a verdict is worse than this one.
    #[arg(long, value_name = "VERDICT", default_value = "says-so")]
    require: Verdict,
    /// Write all that was seen to this file, as JSON; `-` is the output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page to this file, with a line of time for each row.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the verdicts to this file, as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

const HELP: &str = "\
The target finds its model by OPENAI_BASE_URL, ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL, with a key of no provider, and has a
HOME of its own. It is one command, as a shell reads it: what needs `;`, `&&` or `|` is a script, variables are --env. `$PWD` is a
folder of the trial, so name files by their whole path.
A request file is TOML: `path` and `body` with {TEXT}, and if there are such, `id`, `cancel` and `next`:
  path = \"/chat\"
  body = '{\"message\": \"{TEXT}\", \"thread\": \"{CONVERSATION}\"}'
  id.field = \"run.id\"
  cancel.path = \"/runs/{ID}/cancel\"
A screen (`terminal:CMD`) is stopped by esc, ctrl-c, ctrl-c-twice, ctrl-d or hang-up; name by --ready or --free what it shows only when it takes input.
Exit: 0 nothing is worse than required, 1 something is, 2 usage, 3 the target could not be driven, 130 interrupted.";

/// Something is worse than required.
const WORSE: u8 = 1;
/// The target could not be driven.
const NOT_DRIVEN: u8 = 3;
/// Whoever runs it has had enough.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    Guard::run(works)
}

fn works(guard: &Guard) -> ExitCode {
    let args = Args::parse_from(guard.args());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let report = match runtime {
        Ok(runtime) => runtime.block_on(interruptible(&args, guard)),
        Err(error) => return failed(&format!("no runtime could be started: {error}")),
    };
    // Exit: it is a program of its own, and these are its codes (S15.5).
    let Some(report) = report else { return ExitCode::from(INTERRUPTED) };
    if let Err(error) = write(&args, &report) {
        return failed(&error);
    }
    if report.rows.iter().all(|row| row.worst().is_none()) {
        let why = report.rows.first().map_or_else(|| "no way to stop it fits".to_owned(), Row::because);
        return failed(&format!("the target could not be driven: {why}"));
    }
    // Exit: as above.
    if report.worse_than(args.require).next().is_some() { ExitCode::from(WORSE) } else { ExitCode::SUCCESS }
}

fn failed(why: &str) -> ExitCode {
    say(&mut io::stderr(), &format!("stop-test: {why}\n"));
    // Exit: as in `main`.
    ExitCode::from(NOT_DRIVEN)
}

/// The report; none if it was interrupted. What was started has been ended by then, and how that went was said.
async fn interruptible(args: &Args, guard: &Guard) -> Option<Report> {
    let interrupted = Box::pin(interrupted());
    // Either ends it: a report that is there is not thrown away, and trials that are dropped end what they have started.
    match select(Box::pin(run(args, guard)), interrupted).await {
        Either::Left((report, _)) => Some(report),
        Either::Right((_, running)) => {
            drop(running);
            let cleaned = guard.clean();
            say(&mut io::stderr(), &format!("stop-test: interrupted; {cleaned}\n"));
            None
        }
    }
}

/// Waits for what asks a program at a terminal, or under a supervisor, to end. It is heard from this call on: a target that is started
/// later ignores none of these signals, although who started the test may.
fn interrupted() -> impl Future<Output = ()> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let heard = kinds.map(signal).map(|signals| async move {
        match signals {
            Ok(mut signals) => signals.recv().await,
            // Then it ends the program as it always does, and the guard ends the rest.
            Err(_) => std::future::pending().await,
        }
    });
    let [interrupt, terminate, hangup] = heard.map(Box::pin);
    async {
        // Any of them says the same.
        select(interrupt, select(terminate, hangup)).await;
    }
}

/// Plays all that is wanted, and shows how far it is.
async fn run(args: &Args, guard: &Guard) -> Report {
    let target = target(args).within(guard.folder().to_path_buf());
    let only: Vec<Scenario> = args.only.iter().flatten().copied().collect();
    let scenarios = if only.is_empty() { SCENARIOS.to_vec() } else { only };
    let unplayed = if args.only.is_empty() { UNPLAYED.to_vec() } else { Vec::new() };
    let report = |rows| Report {
        target: args.target.to_string(),
        version: env!("CARGO_PKG_VERSION"),
        limits: VerdictLimits::default(),
        rows,
        unplayed,
    };
    let ways: Vec<String> = match target.ways().await {
        Ok(ways) if args.way.is_empty() => ways,
        Ok(_) => args.way.clone(),
        Err(error) => {
            let row = |scenario| Row { scenario, way: String::new(), trials: vec![Err(error.clone())] };
            return report(scenarios.into_iter().map(row).collect());
        }
    };
    let (target, control) = controlled(target, &ways, &scenarios).await;
    let scenarios: Vec<Scenario> = scenarios.into_iter().filter(|scenario| scenario.stops > 0).collect();
    let pairs = scenarios.iter().flat_map(|scenario| ways.iter().map(move |way| (*scenario, way.clone())));
    let rows = stream::iter(pairs).map(|(scenario, way)| row(&target, scenario, way, args.times));
    let rows: Vec<Row> = rows.buffered(usize::try_from(args.jobs).unwrap_or(1)).collect().await;
    report(control.into_iter().chain(rows).collect())
}

/// Plays the scenario without a stop, if it is wanted: what breaks there is not held against a stop.
async fn controlled(target: Target, ways: &[String], scenarios: &[Scenario]) -> (Target, Option<Row>) {
    let wanted = scenarios.iter().find(|scenario| scenario.name == CONTROL);
    let (Some(scenario), Some(_)) = (wanted, ways.first()) else { return (target, None) };
    let row = row(&target, *scenario, "none".to_owned(), 1).await;
    match row.worst() {
        Some(Verdict::Breaks) => {
            let why = format!("without a stop, too: {}", row.because());
            (target.without_next(why), Some(row))
        }
        Some(Verdict::GoesOn) => {
            let why = format!("without a stop, too: {}", row.because());
            (target.without_after_end(why), Some(row))
        }
        _ => (target, Some(row)),
    }
}

/// The target, with what is around it.
fn target(args: &Args) -> Target {
    let mut target = args.target.clone().with_screen(ScreenTexts {
        ready: args.ready.clone(),
        free: args.free.clone(),
        busy: args.busy.clone(),
        stopped: args.stopped.clone(),
        asks: args.asks.clone(),
        allow: args.allow.clone(),
    });
    if args.no_tools {
        target = target.without_tools();
    }
    if let Some(home) = &args.home {
        target = target.at_home(home.clone());
    }
    if let Some(request) = &args.request {
        target = target.asked_by(request.clone());
    }
    for (name, value) in &args.header {
        target = target.with_header(name.clone(), value.clone());
    }
    args.env.iter().fold(target, |target, (name, value)| target.with_variable(name.clone(), value.clone()))
}

async fn row(target: &Target, scenario: Scenario, way: String, times: u32) -> Row {
    let mut trials: Vec<Result<Trial, StageError>> = Vec::new();
    for _ in 0..times {
        trials.push(play(target, &scenario, &way, &VerdictLimits::default()).await);
        // What cannot be reached once is not tried for as long again.
        if trials.last().is_some_and(Result::is_err) {
            break;
        }
    }
    let row = Row { scenario, way, trials };
    if !row.is_unexpressed() {
        let words = if row.worst().is_some() { row.words() } else { row.because() };
        say(&mut io::stderr(), &format!("{} by {}: {words}\n", row.scenario.name, row.way));
    }
    row
}

/// Writes all that is wanted; what cannot be written keeps nothing else from being written.
fn write(args: &Args, report: &Report) -> Result<(), String> {
    let is_output = |file: &&PathBuf| file.as_os_str() == "-";
    let mut failed = Vec::new();
    let mut to_file = |file: Option<&PathBuf>, text: &dyn Fn() -> Result<String, String>| {
        let Some(file) = file else { return };
        let written = text().and_then(|text| fs::write(file, text).map_err(|error| error.to_string()));
        failed.extend(written.err().map(|error| format!("{} cannot be written: {error}", file.display())));
    };
    let json = || serde_json::to_string_pretty(report).map_err(|error| error.to_string());
    to_file(args.html.as_ref(), &|| Ok(report.page()));
    to_file(args.junit.as_ref(), &|| Ok(report.junit(args.require)));
    to_file(args.json.as_ref().filter(|file| !is_output(file)), &json);
    let mut out = io::stdout();
    let is_coloured = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let text = match args.json.as_ref().filter(is_output) {
        Some(_) => format!("{}\n", json()?),
        None if is_coloured => format!("{report:#}"),
        None => format!("{report}"),
    };
    failed.extend(unwritten(&mut out, &text).map(|error| format!("the output cannot be written: {error}")));
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// Writes this; why it could not, unless its reader is gone and the exit code says enough.
fn unwritten(to: &mut impl Write, text: &str) -> Option<io::Error> {
    let written = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    written.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

fn say(to: &mut impl Write, text: &str) {
    // Where this cannot be written, there is no place to say so.
    drop(unwritten(to, text));
}

fn request(file: &str) -> Result<RequestFile, String> {
    RequestFile::read(file.as_ref())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not `NAME=VALUE`"))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn scenario(name: &str) -> Result<Vec<Scenario>, String> {
    let named = Scenario::named(name);
    if named.is_empty() {
        let all = SCENARIOS.map(|scenario| scenario.name).join(", ");
        return Err(format!("there is no scenario `{name}`; these are: {all}"));
    }
    Ok(named)
}
