//! The helper: a process that confines itself, and then is the command.
//!
//! **Invariants**
//! - It has one thread, and executes the command in its own place: who started it holds the command as if it had started
//!   that itself.
//! - The order is fixed: mounts, then privileges, then files, then calls. Each step needs what the next one takes away.

use std::{
    env,
    ffi::OsString,
    fmt, io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{self, Command},
};

use crate::{
    layers::{ARGUMENT, Layer, Layers, PROBE},
    plan::Plan,
    temporary::Temporary,
};

mod calls;
mod capabilities;
mod files;
mod loopback;
mod namespaces;
mod repository;
#[expect(unsafe_code, reason = "three system calls have no safe form; each block argues its own case")]
mod sys;

/// The exit code of a command that was not run, since it could not be confined.
const NOT_CONFINED: i32 = 125;
/// The exit code of a command that cannot be executed, as shells have it.
const NOT_EXECUTED: i32 = 126;

/// Turns this process into a confined command, if it was started as one; else returns.
///
/// Call it first thing in `main`, before any thread is made: namespaces can only be entered by a process with one thread.
pub fn confine_main_if_asked() {
    let mut args = env::args_os().skip(1);
    if args.next().is_some_and(|argument| argument == ARGUMENT) {
        let code = run(args.collect());
        // Exit: this process is the helper. The program of the caller must not begin in it.
        process::exit(code);
    }
}

/// Returns only without a command.
fn run(args: Vec<OsString>) -> i32 {
    if args.first().is_some_and(|argument| argument == PROBE) {
        print!("{}", Layers::written(&probe()));
        return 0;
    }
    let Some(plan) = Plan::read(args) else {
        eprintln!("safepoint: the arguments of the sandbox cannot be understood, so nothing was run");
        return NOT_CONFINED;
    };
    if let Err(failed) = confine(&plan) {
        eprintln!("safepoint: the sandbox could not be set up, so nothing was run: {failed}");
        return NOT_CONFINED;
    }
    let error = Command::new(&plan.program).args(&plan.args).exec();
    eprintln!("safepoint: cannot run {:?}: {error}", plan.program);
    NOT_EXECUTED
}

fn confine(plan: &Plan) -> Result<(), Failed> {
    if plan.holds(Layer::Namespaces) {
        namespaces::enter(plan)?;
    }
    capabilities::drop_all().map_err(during("give up privileges"))?;
    files::confine(plan)?;
    if plan.holds(Layer::Calls) {
        calls::filter(plan)?;
    }
    sys::close_at_exec().map_err(during("close the files of the helper"))
}

/// Tries each layer, in the order in which they are applied, and says which are not there.
fn probe() -> Vec<(Layer, String)> {
    let mut missing = Vec::new();
    let mut tried = |layer: Layer, result: Result<(), Failed>| {
        missing.extend(result.err().map(|failed| (layer, failed.to_string())));
    };
    let temporary = match Temporary::create(&env::temp_dir()) {
        Ok(temporary) => temporary,
        Err(error) => {
            let why = format!("no temporary folder: {error}");
            return Layer::ALL.into_iter().map(|layer| (layer, why.clone())).collect();
        }
    };
    let plan = trial(temporary.path());
    tried(Layer::Namespaces, namespaces::enter(&plan));
    drop(temporary);
    let unprivileged = capabilities::drop_all().map_err(during("give up privileges"));
    let version = unprivileged.and_then(|()| files::version());
    tried(Layer::Files, version.as_ref().map_err(Clone::clone).and_then(|found| found.for_files()));
    tried(Layer::Processes, version.and_then(|found| found.for_processes()));
    tried(Layer::Calls, calls::filter(&plan));
    missing
}

/// A plan that hides something, so that all of it is tried: the device is not used.
fn trial(temporary: &Path) -> Plan {
    Plan {
        write: vec![temporary.to_owned()],
        hide: vec!["/dev/null".into()],
        opening: None,
        held: Layer::ALL.to_vec(),
        temporary: temporary.to_owned(),
        program: OsString::new(),
        args: Vec::new(),
    }
}

/// What could not be done, and why.
#[derive(Clone, Debug)]
struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn during<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Failed {
    move |error| Failed(format!("cannot {what}: {error}"))
}

/// The same for a path.
fn at<E: Into<io::Error>>(what: &str, path: &Path) -> impl FnOnce(E) -> Failed {
    let what = format!("{what} {}", path.display());
    move |error| during(what)(error.into())
}
