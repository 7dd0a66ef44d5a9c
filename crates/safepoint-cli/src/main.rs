//! The `safepoint` binary: reads the command line, builds the runtime, and says with its exit code how it went.

mod agent;
mod api;
mod args;
mod command;
mod control;
mod exit;
mod otel;
mod output;
mod prices;
mod render;
mod session;
mod settings;
mod signals;
mod sync;
#[cfg(test)]
mod tests;
mod visible;

use std::{process::ExitCode, time::Duration};

use clap::Parser as _;

use crate::{
    args::{Cli, Command, chat::ChatArgs, store::StoreCommand},
    command::{
        acp,
        approvals::{self, Verb},
        chat, completions, config, demo, doctor, mcp, nodes, practice, push, run, sandbox, serve, sessions,
        steer, stop, store, trace, withdraw,
    },
    output::Unwritten,
    render::hints,
};

fn main() -> ExitCode {
    // First: a guard forks, and only a process with one thread can do that safely.
    safepoint_tools::process::guard_main_if_asked();
    // Before anything is read: no other process of this user sees our keys.
    safepoint_tools::process::keep_secrets();
    output::tell_panics();
    let cli = match Cli::try_parse_from(args::meant(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return output::of_clap(error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::new(error).context("the runtime could not be started")),
    };
    let telemetry = otel::begin();
    let code = runtime.block_on(async {
        match cli.command {
            None if chat::has_reader() => chat::chat(ChatArgs::usual()).await,
            None => help(),
            Some(Command::Chat(args)) => chat::chat(*args).await,
            Some(Command::Push(args)) => push::push(args).await,
            Some(Command::Steer(args)) => steer::steer(args).await,
            Some(Command::Withdraw(args)) => withdraw::withdraw(args).await,
            Some(Command::Stop(args)) => stop::stop(args).await,
            Some(Command::Sessions(command)) => sessions::sessions(command).await,
            Some(Command::Nodes(command)) => nodes::nodes(command).await,
            Some(Command::Run(args)) => run::run(args).await,
            Some(Command::Resume(args)) => run::resume(args).await,
            Some(Command::Approvals(args)) => approvals::approvals(args).await,
            Some(Command::Approve(args)) => approvals::decide(Verb::Approve, args).await,
            Some(Command::Deny(args)) => approvals::decide(Verb::Deny, args).await,
            Some(Command::Respond(args)) => approvals::decide(Verb::Respond, args).await,
            Some(Command::Store(StoreCommand::Check(place))) => store::check(place).await,
            Some(Command::Store(StoreCommand::Export(args))) => store::export(args).await,
            Some(Command::Store(StoreCommand::Prune(args))) => store::prune(args).await,
            Some(Command::Store(StoreCommand::Copy(args))) => store::copy(args).await,
            Some(Command::Store(StoreCommand::Migrate(place))) => store::migrate(place).await,
            Some(Command::Trace(args)) => trace::trace(args).await,
            Some(Command::Demo) => demo::demo().await,
            Some(Command::Mcp(args)) => mcp::mcp(args).await,
            Some(Command::Config(args)) => config::config(args),
            Some(Command::Doctor(args)) => doctor::doctor(args).await,
            Some(Command::Completions(args)) => completions::completions(args),
            Some(Command::Sandbox(args)) => sandbox::sandbox(args).await,
            Some(Command::Serve(args)) => serve::serve(*args).await,
            Some(Command::Acp(args)) => acp::acp(*args).await,
            Some(Command::Token(args)) => serve::token(args),
            Some(Command::Practice(args)) => practice::practice(args).await,
        }
    });
    // A thread that waits at a prompt must not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(50));
    telemetry.end();
    code.unwrap_or_else(|error| failed(&error))
}

fn help() -> anyhow::Result<ExitCode> {
    use clap::CommandFactory as _;
    output::say(Cli::command().render_help().to_string().trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn failed(error: &anyhow::Error) -> ExitCode {
    let unwritten = error.downcast_ref::<Unwritten>();
    // A reader that closed stdout has seen enough.
    if unwritten != Some(&Unwritten::Closed) {
        output::tell(format_args!("safepoint: {error:#}"));
        if let Some(hint) = hints::after(error) {
            output::tell(format_args!("safepoint: {hint}"));
        }
    }
    if let Some(unwritten) = unwritten {
        return exit::with(unwritten.exit_code());
    }
    exit::of(error)
}
