//! `shell`: runs a line of shell under the guard, stopped by its ladder.
//!
//! The command belongs to tasks of the call's scope from before its start, not to the tool's own future: if that future is
//! dropped, they still climb the ladder, and the run is not quiet before the tree is gone.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use safepoint::{
    Halt, ToolContext, ToolResult,
    raw::spill::private_file,
    stop::Failure,
    tool::{self, EffectClass, FnTool, FullOutput, OnStop, from_fn},
};
use safepoint_sandbox::Confinement;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Root, limits,
    process::{
        Background, Captured, CommandReport, CommandSpec, Exit, Hold, OutputTarget, Process, Processes,
        SpawnError, Waited, names,
    },
    root::refusal,
};

mod moved;
mod outside;
mod progress;
mod refused;

pub use outside::shell_outside;

use progress::Progress;

#[derive(Deserialize, JsonSchema)]
struct ShellArgs {
    /// The line, for `/bin/sh`.
    command: String,
    /// How long it may take, in seconds. It is stopped when this has passed.
    timeout_seconds: Option<f64>,
    /// Whether it goes on in the background (a server, a watcher): the call returns at once, and the output goes to a
    /// file. It ends with the run.
    background: Option<bool>,
}

/// Runs commands in `root`'s directory. They are not confined to it: a program that must be safe from them requires approval,
/// or takes [`confined_shell`].
#[must_use]
pub fn shell(root: Arc<Root>, processes: Processes) -> FnTool {
    let about = "Runs a line of shell and returns its output and exit code. Whatever it leaves running is killed when it \
                 ends, unless `background` is true.";
    shell_as(about, (root, processes), None)
}

/// The same tool, whose commands are confined as far as this system enforces it (see [`Confinement::layers`]). Beside it
/// [`shell_outside`] runs what needs more.
#[must_use]
pub fn confined_shell(root: Arc<Root>, processes: Processes, confinement: Confinement) -> FnTool {
    let about = "Runs a line of shell in a sandbox and returns its output and exit code. It writes only below the root and in \
                 $TMPDIR, and reaches no network but its own localhost. Whatever it leaves running is killed when it ends, \
                 unless `background` is true.";
    shell_as(about, (root, processes), Some(confinement))
}

fn shell_as(
    about: &str,
    (root, processes): (Arc<Root>, Processes),
    confinement: Option<Confinement>,
) -> FnTool {
    let place = root.place();
    from_fn("shell", about, move |cx, args: ShellArgs| {
        let (directory, confinement) = (root.path().to_owned(), confinement.clone());
        let shell = Shell { directory, processes: processes.clone(), confinement };
        async move { shell.call(cx, args).await }
    })
    .with(|spec| spec.effect(EffectClass::Unsafe).on_stop(OnStop::Cooperate(None)).place(place))
}

struct Shell {
    directory: PathBuf,
    processes: Processes,
    /// None: its commands can do what the user can.
    confinement: Option<Confinement>,
}

impl Shell {
    async fn call(self, cx: ToolContext, args: ShellArgs) -> ToolResult {
        if args.command.trim().is_empty() {
            return Err(refusal("`command` is empty".to_owned()).into());
        }
        let limit = args.timeout_seconds.map(limit_of).transpose()?;
        if args.background.unwrap_or(false) {
            return self.in_background(cx, args.command, limit).await.map(Into::into);
        }
        let output = OutputTarget::Capture { budget: limits::TEXT_BYTES };
        let spec = self.spec(args.command).output(output);
        let confinement = self.confinement;
        let driven = started(&cx, self.processes, spec, move |mut process, cx, processes| {
            let mut progress = Progress::new(cx.clone());
            process.on_output(move |chunk| progress.push(chunk));
            let label = format!("command (pid {})", process.pid());
            cx.scope().clone().spawn(label, drive((process, processes), cx, limit, confinement))
        });
        driven.await?.await.map_err(lost)?
    }

    fn spec(&self, command: String) -> CommandSpec {
        let spec = CommandSpec::shell(command).cwd(&self.directory);
        match &self.confinement {
            Some(confinement) => spec.confined(confinement.clone()),
            None => spec,
        }
    }

    async fn in_background(
        self,
        cx: ToolContext,
        command: String,
        limit: Option<Duration>,
    ) -> ToolResult<String> {
        let place = private_file(&std::env::temp_dir());
        let (_, file) =
            place.map_err(|error| refusal(format!("no file could be made for its output: {error}")))?;
        let output = OutputTarget::File(file.clone());
        let spec = self.spec(command).background(Background::Keep).output(output);
        let pid = started(&cx, self.processes, spec, move |process, cx, processes| {
            let pid = process.pid();
            let label = format!("background command (pid {pid})");
            // The task outlives the call, and keeps the run from being called quiet while the job lives.
            drop(cx.scope().clone().spawn(label, keep(process, cx, limit, processes)));
            pid
        });
        let pid = pid.await?;
        Ok(format!("started in the background with pid {pid}; its output goes to {}", file.display()))
    }
}

/// Starts a command, and hands it to `then`, in a task of the call's scope. A stop does not cut the start, which takes a
/// moment: what it has started is in its holder's hands then, and ended by its ladder.
async fn started<T: Send + 'static>(
    cx: &ToolContext,
    processes: Processes,
    spec: CommandSpec,
    then: impl FnOnce(Process, ToolContext, Processes) -> T + Send + 'static,
) -> ToolResult<T> {
    if let Some(stop) = cx.scope().stopping() {
        return Err(stop.into());
    }
    let of = cx.clone();
    let start = async move {
        let process = processes.spawn_in(&of, spec).await.map_err(not_started)?;
        Ok::<T, Halt>(then(process, of, processes))
    };
    cx.scope().spawn("a command that is being started", start).await.map_err(lost)?
}

fn lost(end: impl std::fmt::Debug) -> Halt {
    Failure::new(format!("the command was lost: {end:?}")).into()
}

/// Waits for a command under the call's scope, and tells what it came to.
async fn drive(
    (mut process, processes): (Process, Processes),
    cx: ToolContext,
    limit: Option<Duration>,
    confinement: Option<Confinement>,
) -> ToolResult {
    let time = moved::Time { began: Instant::now(), limit };
    let Some(waited) = moved::wait(&mut process, &cx, limit, &processes).await else {
        return moved::into_background(process, &cx, time, processes);
    };
    let (Waited::Ended(report) | Waited::Stopped(report, _) | Waited::TimedOut(report)) = &waited;
    cx.report_process(report.into());
    let output = process.output().captured();
    match waited {
        Waited::Ended(report) => match unseen(&report) {
            None => {
                let refused = refused::why(confinement.as_ref(), report.exit, &output.text);
                Ok(tell_with(&output, &report, refused))
            }
            Some(why) => {
                cx.set_partial_output(tell(&output, &report));
                Err(Failure::new(why).into())
            }
        },
        Waited::Stopped(report, stop) => {
            cx.set_partial_output(tell(&output, &report));
            Err(stop.into())
        }
        Waited::TimedOut(report) => {
            cx.set_partial_output(tell(&output, &report));
            Err(timed_out(limit.unwrap_or_default()))
        }
    }
}

/// Holds a background job until it ends by itself, its limit passes, the run is stopped, or jobs are to end.
async fn keep(mut process: Process, cx: ToolContext, limit: Option<Duration>, processes: Processes) {
    let started = Instant::now();
    loop {
        // One limit for the command and what it leaves, not one for each.
        let left = limit.map(|limit| limit.saturating_sub(started.elapsed()));
        let report = process.keep_in(cx.scope(), left, limits::SHELL_CLEANUP, processes.jobs_end()).await;
        cx.report_process((&report).into());
        if report.background.is_empty() {
            return;
        }
    }
}

/// Why the result of a command that was not stopped is unknown: its end was not seen, or was not its own.
fn unseen(report: &CommandReport) -> Option<String> {
    let lost = "so it is unknown how far it came; what was found of it was killed";
    match (report.hold, report.exit) {
        (Hold::Kept, Exit::Code(_) | Exit::Signal(_)) => None,
        (Hold::Kept, Exit::Unknown) => Some(format!("its end was not seen, {lost}")),
        (Hold::KeeperLost, _) => Some(format!("the process that held it died before it, {lost}")),
        (Hold::GuardLost, _) => Some(format!("the guard of all commands died, {lost}")),
        (Hold::LeaseOver, _) => Some(format!("the lease of its session ended, {lost}")),
    }
}

fn tell(output: &Captured, report: &CommandReport) -> tool::Output {
    tell_with(output, report, None)
}

/// What is reported of a command, and where all of its output is if that is only a part.
fn tell_with(output: &Captured, report: &CommandReport, last: Option<String>) -> tool::Output {
    let bytes = usize::try_from(output.total).unwrap_or(usize::MAX);
    let whole = output.truncated.then(|| FullOutput { bytes, file: output.file.clone() });
    let words = [Some(in_words(output, report)), last].into_iter().flatten().collect::<Vec<_>>();
    tool::Output { whole, ..words.join("\n").into() }
}

fn in_words(output: &Captured, report: &CommandReport) -> String {
    let mut text = output.text.clone();
    let mut note = |line: String| {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
    };
    match report.exit {
        Exit::Code(0) if output.total > 0 => {}
        Exit::Code(0) => note("[exit 0, no output]".to_owned()),
        exit => note(format!("[{exit}]")),
    }
    if !report.left_behind.is_empty() {
        note(format!(
            "[it left these running, and they were killed: {}]",
            names(&report.left_behind).join(", ")
        ));
    }
    if !report.survivors.is_empty() {
        note(format!("[these could not be killed: {}]", names(&report.survivors).join(", ")));
    }
    text
}

fn limit_of(seconds: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| refusal("`timeout_seconds` must be more than 0".to_owned()))
}

fn timed_out(limit: Duration) -> Halt {
    Failure::new(format!("it was stopped after its limit of {limit:?}")).by_time_limit().into()
}

fn not_started(error: SpawnError) -> Failure {
    let text = match &error {
        SpawnError::KeeperLost => return Failure::new(error.to_string()),
        _ => error.to_string(),
    };
    refusal(text)
}
