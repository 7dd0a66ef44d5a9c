//! Commands that can really be stopped: each in a separate tree, under a guard that leaves nothing behind (S4.9).
//!
//! ```no_run
//! # async fn example() -> Result<(), safepoint_tools::process::SpawnError> {
//! use safepoint_tools::process::{CommandSpec, Processes};
//! let processes = Processes::new("run_1");
//! let mut build = processes.spawn(CommandSpec::shell("make -j8")).await?;
//! let report = build.wait().await;
//! println!("{}: {}", report.exit, build.output().text());
//! # Ok(())
//! # }
//! ```
//!
//! **Invariants**
//! - A guard is launched only where the program has said that it can be one ([`guard_main_if_asked`]), or where a guard
//!   program is named; else a command is held by a process group, and every report says so.
//! - No task is spawned here: the caller that waits for a command drives it, and it is killed when that wait is dropped.
//! - Output never flows through the guard.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

mod abandoned;
mod cgroups;
mod child;
mod contacts;
mod enclosed;
mod environment;
mod error;
mod escalation;
#[expect(unsafe_code, reason = "pre_exec has no safe form; the block argues its own case")]
mod fresh;
mod guard;
mod guarded;
mod holder;
mod launch;
mod lease;
mod output;
mod process_group;
mod receipt;
mod report;
mod runtime;
mod scoped;
#[expect(
    unsafe_code,
    reason = "the environment has no safe form that forgets; each block argues its own case"
)]
mod secrecy;
mod spec;
mod started;
mod stdio;
mod survivors;
mod tree;
mod wire;
mod witness;

pub use abandoned::reap_abandoned;
pub use child::Process;
pub use contacts::{Contact, Contacts, Members, NoService, Service, Sight};
pub use enclosed::{Enclosure, enclosing_run};
pub use environment::{COMMAND_MARK, CommandEnvironment, RUN_MARK, holds_secret, is_secret, password_in};
pub use error::SpawnError;
pub use lease::{Deadline, boot_time};
pub use output::{Capture, Captured};
pub use report::{Climbed, CommandReport, Containment, Exit, Hold, ProcessRecord, Rung, TreeMember};
pub use scoped::Waited;
pub use secrecy::keep_secrets;
pub use spec::{Background, CommandSpec, ControlGroups, Ladder, OutputTarget, Stdin};
pub use survivors::{Reaped, reap_survivors};

pub use receipt::names;

use safepoint::ToolContext;
use safepoint_sandbox::Layers;
use tokio::sync::watch;

use child::Ties;
use launch::Guard;
use lease::{Term, Timer};
use witness::Witness;

/// Whether this program can be its own guard.
/// Set at most once, before `main` makes a thread.
static OPTED_IN: AtomicBool = AtomicBool::new(false);

/// Turns this process into a guard, or into a command that a guard confines, if it was started as one; else notes that it could
/// be.
///
/// Call it first thing in `main`, before any thread or runtime is made: a guard forks, and only a process with one
/// thread can do that safely. A program that never calls it runs its commands without a guard, with the lower grade
/// [`Containment::ProcessGroup`].
///
/// ```no_run
/// // the first line of main, before the runtime is built:
/// safepoint_tools::process::guard_main_if_asked();
/// ```
pub fn guard_main_if_asked() {
    safepoint_sandbox::confine_main_if_asked();
    if std::env::args_os().nth(1).is_some_and(|argument| argument == guard::ARGUMENT) {
        let code = guard::run();
        // Exit: this process is the guard. The program of the caller must not begin in it.
        std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
    }
    // Relaxed: it is set before any other thread exists.
    OPTED_IN.store(true, Ordering::Relaxed);
}

/// Runs commands and holds them. Cheap to clone; one guard for all clones, launched with the first command and again
/// if it has died.
///
/// When the last clone and the last [`Process`] are gone, so is everything that was started through them.
#[derive(Clone, Debug)]
#[must_use = "a setting returns the changed value"]
pub struct Processes {
    shared: Arc<Shared>,
    environment: Arc<CommandEnvironment>,
    term: Option<Arc<Term>>,
}

#[derive(Debug)]
struct Shared {
    run: String,
    grade: Grade,
    /// Held while a guard is launched, so that two commands at once share one. The launch blocks and awaits nothing,
    /// and takes no other lock of this crate. A guard that two callers found dead is replaced once: `forget` removes
    /// only the guard that its caller saw.
    guard: Mutex<Option<Arc<Guard>>>,
    timer: Arc<Timer>,
    /// Whether declared background jobs are to end.
    jobs_end: watch::Sender<bool>,
    /// Changes when the commands that the `shell` tool waits for are to continue in the background.
    moves: watch::Sender<()>,
}

/// Who holds the commands.
#[derive(Debug)]
enum Grade {
    Guarded(PathBuf),
    Group,
}

impl Processes {
    /// Under this program as its own guard, if it said that it can be one; else without a guard.
    ///
    /// `run` is the mark that every process carries in its environment, and by which its survivors are found.
    pub fn new(run: impl Into<String>) -> Self {
        // Relaxed: the start of each thread orders it after the store, which came before all threads.
        if OPTED_IN.load(Ordering::Relaxed) {
            Self::guarded_by(run, "/proc/self/exe")
        } else {
            Self::unguarded(run)
        }
    }

    /// Under a guard program: one that calls [`guard_main_if_asked`], such as this crate's own `safepoint-guard`.
    pub fn guarded_by(run: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self::with(run.into(), Grade::Guarded(program.into()))
    }

    /// Without a guard: the declared lower grade.
    pub fn unguarded(run: impl Into<String>) -> Self {
        Self::with(run.into(), Grade::Group)
    }

    fn with(run: String, grade: Grade) -> Self {
        Self {
            shared: Arc::new(Shared {
                run,
                grade,
                guard: Mutex::new(None),
                timer: Arc::new(Timer::new()),
                jobs_end: watch::Sender::new(false),
                moves: watch::Sender::new(()),
            }),
            environment: Arc::default(),
            term: None,
        }
    }

    /// Sets which variables of the runtime's environment commands are given, where they do not say it themselves. Of
    /// this clone and those made of it. Default: [`CommandEnvironment::filtered`].
    pub fn environment(mut self, environment: CommandEnvironment) -> Self {
        self.environment = Arc::new(environment);
        self
    }

    /// The same for the commands of one session: as long as it has any, they live no longer than the moment that its
    /// [`Deadline`] names, also while this runtime is suspended. A command without a guard is not ended by it.
    pub fn under_lease(&self) -> (Self, Deadline) {
        let term = self.shared.timer.term();
        (Self { term: Some(Arc::clone(&term)), ..self.clone() }, Deadline::new(term))
    }

    /// Starts a command.
    ///
    /// # Errors
    /// [`SpawnError`] says what could not be done, and whether it was the command's fault.
    ///
    /// # Panics
    /// If there is no tokio runtime with IO and time.
    ///
    /// # Cancel safety
    /// A command that had been started already is killed.
    pub async fn spawn(&self, spec: CommandSpec) -> Result<Process, SpawnError> {
        self.spawn_for(spec, || None).await
    }

    /// Starts a command of a call. From now on the call's run is not quiet before the command is gone, no matter who drops
    /// this future or the [`Process`], and its end is reported to the call.
    ///
    /// # Errors
    /// As [`Processes::spawn`].
    ///
    /// # Panics
    /// As [`Processes::spawn`].
    ///
    /// # Cancel safety
    /// A command that had been started already is killed, and its run waits for its end.
    pub async fn spawn_in(&self, cx: &ToolContext, spec: CommandSpec) -> Result<Process, SpawnError> {
        self.spawn_for(spec, || Some(Witness::call(cx))).await
    }

    /// The same for work that is no call.
    #[cfg(feature = "mcp")]
    pub(crate) async fn spawn_under(
        &self,
        scope: &safepoint::stop::Scope,
        spec: CommandSpec,
    ) -> Result<Process, SpawnError> {
        self.spawn_for(spec, || Some(Witness::scope(scope))).await
    }

    async fn spawn_for(
        &self,
        spec: CommandSpec,
        witness: impl Fn() -> Option<Witness>,
    ) -> Result<Process, SpawnError> {
        let ties = || Ties { witness: witness(), lease: self.term.as_ref().map(Term::command) };
        match &self.shared.grade {
            Grade::Guarded(program) => self.spawn_guarded(program, spec, ties).await,
            Grade::Group if spec.confinement.is_some() => Err(SpawnError::Unconfined),
            Grade::Group => {
                let env = spec.whole_environment(&self.environment);
                Process::in_group(&self.shared.run, (spec, env), ties())
            }
        }
    }

    /// What of a [`Confinement`](safepoint_sandbox::Confinement) this system enforces, found by trying it in a process under
    /// the guard.
    ///
    /// # Cancel safety
    /// The process is killed.
    pub async fn layers(&self) -> Layers {
        if let Grade::Group = self.shared.grade {
            return Layers::none(&SpawnError::Unconfined.to_string());
        }
        match self.spawn(CommandSpec::new(spec::OWN_PROGRAM).args(Layers::probe())).await {
            Ok(mut probe) => {
                probe.wait().await;
                Layers::read(&probe.output().text())
            }
            Err(error) => Layers::none(&error.to_string()),
        }
    }

    /// The guard's process id, while there is one.
    #[must_use]
    pub fn guard_pid(&self) -> Option<u32> {
        self.lock().as_ref().map(|guard| guard.pid())
    }

    /// Ends the declared background jobs of the `shell` tool, each by its ladder, and every later one at once: for a
    /// program that has nothing more to do. Their runs are quiet when the jobs are gone.
    pub fn end_jobs(&self) {
        self.shared.jobs_end.send_replace(true);
    }

    /// Moves each command that the `shell` tool waits for now to the background (S4.35): its call ends with what was written so
    /// far, and it continues as a declared background job does.
    ///
    /// ```no_run
    /// # use safepoint_tools::process::Processes;
    /// # fn pressed(processes: &Processes) {
    /// processes.to_background();
    /// # }
    /// ```
    pub fn to_background(&self) {
        self.shared.moves.send_replace(());
    }

    /// Resolves when the commands that run now are to continue in the background.
    pub(crate) async fn moves(&self) {
        if self.shared.moves.subscribe().changed().await.is_err() {
            // It cannot be: the sender is held by `self`.
        }
    }

    /// Resolves when background jobs are to end.
    pub(crate) async fn jobs_end(&self) {
        let mut reported = self.shared.jobs_end.subscribe();
        if reported.wait_for(|end| *end).await.is_err() {
            // It cannot be: the sender is held by `self`.
        }
    }

    /// A guard that dies before the keeper has said a word has started nothing: then another one is launched, once.
    async fn spawn_guarded(
        &self,
        program: &std::path::Path,
        spec: CommandSpec,
        ties: impl Fn() -> Ties,
    ) -> Result<Process, SpawnError> {
        let guard = self.guard(program)?;
        let env = spec.whole_environment(&self.environment);
        let again = (spec.clone(), env.clone());
        match Process::under(Arc::clone(&guard), &self.shared.run, (spec, env), ties()).await {
            Err(SpawnError::GuardLost) => {
                self.forget(&guard);
                Process::under(self.guard(program)?, &self.shared.run, again, ties()).await
            }
            other => other,
        }
    }

    fn guard(&self, program: &std::path::Path) -> Result<Arc<Guard>, SpawnError> {
        let mut slot = self.lock();
        if let Some(guard) = slot.as_ref().filter(|guard| guard.is_alive()) {
            return Ok(Arc::clone(guard));
        }
        let guard = Arc::new(Guard::launch(program, &self.shared.timer)?);
        *slot = Some(Arc::clone(&guard));
        Ok(guard)
    }

    fn forget(&self, lost: &Arc<Guard>) {
        let mut slot = self.lock();
        if slot.as_ref().is_some_and(|guard| Arc::ptr_eq(guard, lost)) {
            *slot = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Guard>>> {
        self.shared.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
