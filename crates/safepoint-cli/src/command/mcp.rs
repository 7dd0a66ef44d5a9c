//! `safepoint mcp`: trying a server of tools by hand.

mod call;
mod edit;
mod login;
mod serve;

use std::{path::Path, process::ExitCode};

use futures_util::future::join_all;
use safepoint::{Tool, tool::EffectClass};
use safepoint_tools::{
    mcp::{McpError, Offer, Server},
    process::Processes,
};
use serde_json::{Value, json};

use super::unless::{stopped, unless};
use crate::{
    agent::mcp::warn,
    args::{
        mcp::{LsArgs, McpArgs, McpCommand},
        run::OnDisconnect,
    },
    exit::Usage,
    output,
    render::reply_json::ReplyLines,
    settings::{
        config::{Config, place},
        mcp::Servers,
        secrets,
    },
    signals::Signals,
    visible::one_line,
};

/// Letters of a tool's name that are shown.
const NAME: usize = 120;

/// Does it. The exit code is 0, or 1 if a server or a tool failed.
pub(crate) async fn mcp(args: McpArgs) -> anyhow::Result<ExitCode> {
    let on_disconnect = match args.command {
        McpCommand::Serve(_) => OnDisconnect::Detach,
        _ => OnDisconnect::Stop,
    };
    let mut signals = Signals::listen(on_disconnect)?;
    match args.command {
        // What it was doing is dropped, which ends the servers; the guard sees to that.
        McpCommand::Ls(args) => {
            let done = unless(&mut signals, ls(args)).await;
            done.unwrap_or_else(|got| Ok(stopped(got, "nothing was called")))
        }
        McpCommand::Call(args) => call::call(args, &mut signals).await,
        McpCommand::Add(args) => edit::add(&args),
        McpCommand::Rm(args) => edit::rm(&args),
        McpCommand::Login(args) => login::login(&args, &mut signals).await,
        McpCommand::Logout(args) => login::logout(&args),
        McpCommand::Serve(args) => serve::serve(*args, &mut signals).await,
    }
}

fn servers(config: Option<&Path>) -> anyhow::Result<Servers> {
    let servers = Config::load(config)?.mcp;
    output::hide(secrets::known_with(&servers));
    Ok(servers)
}

fn processes() -> Processes {
    Processes::new(format!("mcp_{}", uuid::Uuid::now_v7().simple()))
}

async fn ls(args: LsArgs) -> anyhow::Result<ExitCode> {
    let servers = servers(args.config.as_deref())?;
    let chosen = match &args.name {
        Some(name) => vec![servers.one(name)?],
        None => servers.all()?,
    };
    if chosen.is_empty() {
        let file = place(args.config.as_deref());
        let how = format!("{file} has no [mcp.NAME] with a `command` or a `url`; see `safepoint mcp --help`");
        return Err(Usage(format!("no tool server: {how}")).into());
    }
    let processes = processes();
    let looked = join_all(chosen.into_iter().map(|server| look(server.under(&processes)))).await;
    let (mut code, mut lines) = (ExitCode::SUCCESS, ReplyLines::default());
    for (name, found) in looked {
        match &found {
            Ok(found) => warn(&name, &found.offer),
            Err(_) => code = ExitCode::FAILURE,
        }
        if args.json {
            output::say_json(as_json(&mut lines, &name, &found))?;
        } else {
            output::say(for_people(&name, &found))?;
        }
    }
    Ok(code)
}

/// What was found of one server.
struct Found {
    protocol: Option<String>,
    offer: Offer,
}

async fn look(server: Server) -> (String, Result<Found, McpError>) {
    let name = server.name().to_owned();
    let found = async {
        let client = server.connect().await?;
        let offer = client.offer().await?;
        let protocol = client.protocol();
        client.close().await;
        Ok(Found { protocol, offer })
    };
    (name, found.await)
}

fn effect(class: EffectClass) -> String {
    json!(class).as_str().unwrap_or_default().replace('_', "-")
}

fn for_people(name: &str, found: &Result<Found, McpError>) -> String {
    let found = match found {
        Ok(found) => found,
        Err(error) => return format!("{name}: {error}"),
    };
    let mut text = format!("{name} (protocol {})", found.protocol.as_deref().unwrap_or("unknown"));
    for (tool, own) in found.offer.tools.iter().zip(&found.offer.own_names) {
        let spec = tool.spec();
        let what = spec.description.lines().next().unwrap_or_default();
        let of = if spec.name.ends_with(own) { String::new() } else { format!(" ({})", own) };
        text.push_str(&format!("\n  {}{of} [{}] {}", spec.name, effect(spec.effect), what));
    }
    for refused in &found.offer.refused {
        text.push_str(&format!("\n  refused: `{}`: {}", one_line(&refused.name, NAME), refused.why));
    }
    text
}

fn as_json(lines: &mut ReplyLines, name: &str, found: &Result<Found, McpError>) -> Value {
    let line = match found {
        Ok(Found { protocol, offer }) => {
            let tools = offer.tools.iter().zip(&offer.own_names).map(|(tool, own)| {
                let spec = tool.spec();
                json!({
                    "name": spec.name,
                    "own_name": own,
                    "description": spec.description,
                    "parameters": spec.parameters,
                    "effect": effect(spec.effect),
                })
            });
            let refused =
                offer.refused.iter().map(|refused| json!({"name": refused.name, "why": refused.why}));
            json!({
                "name": name, "protocol": protocol,
                "tools": tools.collect::<Value>(), "refused": refused.collect::<Value>(),
            })
        }
        Err(error) => json!({"name": name, "error": error.to_string()}),
    };
    lines.line("mcp_server", None, line)
}
