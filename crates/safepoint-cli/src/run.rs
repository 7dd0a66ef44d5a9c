//! `safepoint run`: turns one after the other, each shown as it happens, each with its outcome.

use std::{
    io::{IsTerminal as _, Read as _},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context as _;
use safepoint::{
    Agent, History, Limits, Outcome, RunHandle, Tool,
    event::{Event, EventKind, Fact},
    receipt::{Ending, Receipt},
};
use safepoint_tools::toolbox;

use crate::{
    approve,
    args::{Approve, RunArgs, Usage},
    config::Config,
    json::Lines,
    model::{self, Chosen},
    printer::Printer,
    signals::{Got, Pressed, Signals, disconnect},
};

/// Runs the turns; the exit code is the last one's.
pub(crate) async fn run(mut args: Box<RunArgs>) -> anyhow::Result<ExitCode> {
    let config = Config::load(args.config.as_deref())?;
    config.fill(&mut args);
    let prompts = prompts(&args)?;
    let (agent, chosen_notice, _server) = agent(&args).await?;
    if let Some(notice) = chosen_notice {
        eprintln!("safepoint: {notice}");
    }
    let mut signals = Signals::listen()?;
    let mut view = View::new(&args);
    let mut history = History::new();
    let mut code = ExitCode::SUCCESS;
    for prompt in prompts {
        let mut pressed = Pressed::default();
        let run = agent.run_on(history, prompt);
        let handle = run.handle();
        view.begin(&handle);
        let _running = run.start();
        follow(&handle, &mut signals, &mut pressed, &mut view, &args).await;
        let outcome = handle.done().await;
        let receipt = settle(&handle, &mut signals, &mut pressed, &args).await;
        view.end(&outcome, &receipt);
        history = outcome.history().clone();
        code = exit_code(&outcome, pressed);
        if pressed.count > 1 {
            break;
        }
    }
    view.printer.finish();
    Ok(code)
}

/// Shows events until the run has settled; signals and a lost reader are acted on at once.
async fn follow(
    handle: &RunHandle,
    signals: &mut Signals,
    pressed: &mut Pressed,
    view: &mut View,
    args: &RunArgs,
) {
    let mut events = handle.events();
    let closed = view.printer.closed();
    let mut closed = std::pin::pin!(closed);
    let mut reader = Reader::There;
    loop {
        tokio::select! {
            biased;
            // Losing this branch loses nothing: the signal stays pending.
            got = signals.next() => {
                pressed.ask(got, handle, args);
                view.asked(handle, got);
            }
            // Losing this one loses nothing: the flag stays set.
            () = &mut closed, if reader == Reader::There => {
                reader = Reader::Gone;
                disconnect(handle, args, "stdout was closed");
            }
            // Losing this one loses nothing: the reader's place moves only when an event is returned.
            event = events.next() => match event {
                Some(event) => view.event(&event),
                None => return,
            },
        }
    }
}

/// Whether stdout is still read. Exhaustive: it is or it is not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

/// Waits for quiet; a second signal here cannot make it sooner, but is not lost.
async fn settle(
    handle: &RunHandle,
    signals: &mut Signals,
    pressed: &mut Pressed,
    args: &RunArgs,
) -> Arc<Receipt> {
    loop {
        tokio::select! {
            biased;
            // Losing this branch loses nothing: the signal stays pending.
            got = signals.next() => pressed.ask(got, handle, args),
            // Losing this one loses nothing: quiet can be awaited again.
            quiet = handle.quiet() => return Arc::clone(quiet.receipt()),
        }
    }
}

fn exit_code(outcome: &Outcome, pressed: Pressed) -> ExitCode {
    ExitCode::from(match (outcome.ending(), pressed.first) {
        (Ending::Done, _) => 0,
        (Ending::Failed, _) => 1,
        (Ending::Suspended, _) => 11,
        (Ending::Stopped, Some(Got::Interrupt)) => 130,
        (Ending::Stopped, Some(Got::Terminate)) => 143,
        (Ending::Stopped, Some(Got::Hangup) | None) => 10,
    })
}

fn prompts(args: &RunArgs) -> anyhow::Result<Vec<String>> {
    let first = match args.prompt.as_deref() {
        Some(prompt) if prompt != "-" => prompt.to_owned(),
        None if std::io::stdin().is_terminal() => {
            return Err(Usage("what should it do? safepoint run \"PROMPT\"".into()).into());
        }
        Some(_) | None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("the prompt could not be read from stdin")?;
            text
        }
    };
    if first.trim().is_empty() {
        return Err(Usage("the prompt is empty".into()).into());
    }
    Ok(std::iter::once(first).chain(args.then.iter().cloned()).collect())
}

async fn agent(
    args: &RunArgs,
) -> anyhow::Result<(Agent, Option<String>, Option<Arc<safepoint_testkit::server::ModelServer>>)> {
    let tools = tools(args)?;
    let Chosen { mut builder, notice, _server } = model::choose(args).await?;
    let defaults = Limits::default();
    builder = builder.limits(Limits {
        max_rounds: args.max_rounds.unwrap_or(defaults.max_rounds),
        wall_time: args.timeout,
        parallel_calls: args.parallel.unwrap_or(defaults.parallel_calls),
        call_timeout: args.tool_timeout,
        ..defaults
    });
    if let Some(system) = &args.system {
        builder = builder.system(system.as_str());
    }
    builder = approve::under(builder, args.approve.unwrap_or(Approve::Ask), &tools);
    Ok((builder.tools(tools).try_build()?, notice, _server))
}

fn tools(args: &RunArgs) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    let list = args.tools.as_deref().unwrap_or("none");
    if matches!(list.trim(), "none" | "") {
        return Ok(Vec::new());
    }
    let root = match &args.root {
        Some(root) => root.clone(),
        None => {
            std::env::current_dir().context("the working directory cannot be used; name one with --root")?
        }
    };
    let toolbox = toolbox(&root).map_err(|error| Usage(error.to_string()))?;
    Ok(toolbox.select(list).map_err(|error| Usage(format!("--tools: {error}")))?)
}

/// What the user sees.
struct View {
    printer: Printer,
    lines: Option<Lines>,
    column: Column,
}

/// Where the last text on stdout ended. Exhaustive: at the start of a line or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Start,
    Inside,
}

impl View {
    fn new(args: &RunArgs) -> Self {
        Self { printer: Printer::start(), lines: args.json.then(Lines::new), column: Column::Start }
    }

    fn begin(&mut self, handle: &RunHandle) {
        if let Some(lines) = &mut self.lines {
            lines.turn(handle.id().as_str());
        }
    }

    fn event(&mut self, event: &Event) {
        if let Some(lines) = &mut self.lines {
            let line = lines.event(event);
            if !line.is_empty() {
                self.printer.print(line);
            }
            return;
        }
        match &event.kind {
            EventKind::Text(text) => {
                self.column = if text.ends_with('\n') { Column::Start } else { Column::Inside };
                self.printer.print(text.clone());
            }
            EventKind::Retrying { failed, after, error } => {
                self.status(&format!("try {failed} failed ({error}); again in {after:.1?}"));
            }
            EventKind::Fact(fact) => self.fact(fact),
            _ => {}
        }
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::CallStarted { name, args, .. } => self.status(&format!("▸ {name} {args}")),
            Fact::CallEnded { report, .. } => {
                self.status(&format!("▪ {}: {}", report.name, report.status.as_str().replace('_', " ")));
            }
            Fact::StopEscalated => self.status("the grace is over: stopping now"),
            Fact::ModelEnded { .. } => self.fresh_line(),
            _ => {}
        }
    }

    /// Says at once that a stop was asked, and what it waits for.
    fn asked(&mut self, handle: &RunHandle, got: Got) {
        let running = handle.alive();
        let what = match (got, running.as_slice()) {
            (_, []) => "stopping…".to_owned(),
            (_, running) => format!("stopping… waits for {} (again to stop now)", running.join(", ")),
        };
        if self.lines.is_none() {
            self.status(&what);
        } else {
            eprintln!("safepoint: {what}");
        }
    }

    fn end(&mut self, outcome: &Outcome, receipt: &Receipt) {
        if let Some(lines) = &mut self.lines {
            let at = receipt.quiet_at.unwrap_or(receipt.settled_at);
            for late in &receipt.late {
                self.printer.print(lines.line("late", at, serde_json::json!({ "what": late })));
            }
            let quiet = serde_json::json!({ "quiet": receipt.quiet_at, "survivors": receipt.survivors });
            self.printer.print(lines.line("quiet", at, quiet));
            let line = lines.outcome(outcome, receipt);
            self.printer.print(line);
            return;
        }
        self.fresh_line();
        match outcome {
            Outcome::Done(_) => {}
            Outcome::Stopped(_) | Outcome::Suspended(_) => eprintln!("{receipt}"),
            Outcome::Failed(error) => {
                eprintln!("safepoint: {error}");
                if let Some(hint) = error.hint() {
                    eprintln!("  hint: {hint}");
                }
            }
        }
    }

    fn status(&mut self, text: &str) {
        self.fresh_line();
        eprintln!("{text}");
    }

    fn fresh_line(&mut self) {
        if self.column == Column::Inside && self.lines.is_none() {
            self.printer.print("\n");
            self.column = Column::Start;
        }
    }
}
