//! `safepoint mcp call`: one call by hand, checked, stopped and reported like a call of a run.

use std::process::ExitCode;

use safepoint_tools::mcp::{Called, McpError, Offer};
use serde_json::{Value, json};

use super::{processes, servers};
use crate::{
    args::mcp::CallArgs,
    command::unless::{stopped, unless},
    exit::Usage,
    output::{self, Piece, Stream},
    render::reply_json::ReplyLines,
    signals::Signals,
};

pub(crate) async fn call(args: CallArgs, signals: &mut Signals) -> anyhow::Result<ExitCode> {
    let arguments: Value = serde_json::from_str(&args.args)
        .ok()
        .filter(Value::is_object)
        .ok_or_else(|| Usage(format!("--args: `{}` is not a JSON object", args.args)))?;
    let server = servers(args.config.as_deref())?.one(&args.name)?;
    let begun = unless(signals, async {
        let client = server.under(&processes()).connect().await?;
        let offer = client.offer().await?;
        Ok::<_, McpError>((client, offer))
    });
    let (client, offer) = match begun.await {
        Ok(begun) => begun?,
        Err(got) => return Ok(stopped(got, "the tool was not called")),
    };
    let tool = meant(&offer, &args, &arguments)?;
    let called = client.call(tool, arguments, |notice| {
        // Without a reader of stderr there is nowhere to report.
        drop(output::put(Stream::Err, &Piece::Words(notice)));
    });
    let called = async {
        match args.timeout {
            Some(limit) => tokio::time::timeout(limit, called).await,
            None => Ok(called.await),
        }
    };
    // A signal drops the call, which tells the server; the close waits until that is sent.
    let called = unless(signals, called).await;
    if let Err(second) = unless(signals, client.close()).await {
        return Ok(stopped(second, UNKNOWN));
    }
    let called = match called {
        Ok(called) => called,
        Err(got) => {
            if args.json {
                output::say_json(call_line(&args, "stopped", UNKNOWN))?;
            }
            return Ok(stopped(got, UNKNOWN));
        }
    };
    let (status, text) = match called {
        Ok(Ok(Called::Good(output))) => ("completed", output.text),
        Ok(Ok(Called::Bad(text))) => ("failed", text),
        Ok(Err(failure)) if failure.is_unreachable() => ("unreachable", failure.to_string()),
        Ok(Err(failure)) => ("failed", failure.to_string()),
        Err(_elapsed) => ("timed_out", format!("it took too long; {UNKNOWN}")),
    };
    report(&args, status, &text)
}

/// Says what a call came to.
fn report(args: &CallArgs, status: &str, text: &str) -> anyhow::Result<ExitCode> {
    let is_good = status == "completed";
    if args.json {
        output::say_json(call_line(args, status, text))?;
    } else if is_good {
        output::say(text)?;
    } else {
        output::tell(format_args!("safepoint: {}: {}", status.replace('_', " "), text));
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// For a call without an answer.
const UNKNOWN: &str = "what it did is not known";

fn call_line(args: &CallArgs, status: &str, text: &str) -> Value {
    let (server, tool) = (&args.name, &args.tool);
    let line = json!({"server": server, "tool": tool, "status": status, "output": text});
    ReplyLines::default().line("mcp_call", None, line)
}

/// The server's own name of the tool that is meant, if it may be called with these arguments.
fn meant<'a>(offer: &'a Offer, args: &CallArgs, arguments: &Value) -> Result<&'a str, Usage> {
    let (server, named) = (&args.name, &args.tool);
    let Some(tool) = own_name(offer, named) else {
        let known = wanted(offer).collect::<Vec<_>>().join(", ");
        return Err(Usage(if offer.names.contains(named) {
            format!(
                "`include` or `exclude` of [mcp.{server}] leaves the tool `{named}` out: nothing was sent"
            )
        } else {
            format!("there is no tool `{named}` at `{server}`; there are {known}")
        }));
    };
    match offer.misfit(tool, arguments) {
        None => Ok(tool),
        Some(what) => {
            Err(Usage(format!("--args: they do not fit the tool `{tool}`: {what}; nothing was sent")))
        }
    }
}

/// The server's own name of a tool that is named so, or offered so; none of one that is left out.
fn own_name<'a>(offer: &'a Offer, named: &str) -> Option<&'a str> {
    let mut offered = offer.tools.iter().zip(&offer.own_names);
    let own = wanted(offer).find(|name| *name == named);
    own.or_else(|| offered.find(|(tool, _)| tool.spec().name == named).map(|(_, own)| own.as_str()))
}

/// The names of the tools that the choice of them leaves in, also of those that no model can be given.
fn wanted(offer: &Offer) -> impl Iterator<Item = &str> {
    let refused = offer.refused.iter().map(|refused| &refused.name);
    offer.own_names.iter().chain(refused).map(String::as_str)
}
