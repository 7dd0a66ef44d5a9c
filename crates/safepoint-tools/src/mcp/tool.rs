//! A server's tool as one that the engine runs.

use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use safepoint::{
    Tool, ToolContext, ToolResult,
    receipt::{RemoteReport, RemoteStopState, StopSupport},
    stop::Failure,
    tool::{EffectClass, OnStop, Output, ToolSpec},
};
use serde_json::Value;

use super::{
    Client,
    content::{self, Called},
    listing::Listed,
    notices::{Afterwards, Sink},
    server::{Annotations, Server},
};

/// One tool. It keeps its server.
pub(super) struct McpTool {
    spec: ToolSpec,
    client: Client,
    name: String,
}

impl McpTool {
    pub(super) fn new(client: Client, server: &Server, listed: Listed) -> Self {
        let effect = match server.annotations {
            Annotations::Trusted => listed.effect,
            Annotations::Ignored => EffectClass::Unsafe,
        };
        // A stop waits for nothing: the future is dropped, which tells the server.
        let mut spec = ToolSpec::new(listed.offered, listed.description)
            .parameters(listed.schema)
            .effect(effect)
            .on_stop(OnStop::Drop)
            .place(server.place());
        spec.timeout = server.call;
        Self { spec, client, name: listed.name }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, cx: ToolContext, args: Value) -> BoxFuture<'static, ToolResult> {
        let (client, name, effect) = (self.client.clone(), self.name.clone(), self.spec.effect);
        Box::pin(async move {
            let server = client.name().to_owned();
            let report = RemoteReport::of(format!("mcp:{server}"), StopSupport::CallerSide);
            let row = Row { cx: cx.clone(), server: server.clone(), effect, report: Mutex::new(report) };
            let sink = Sink::new(move |text| cx.progress(text), move |what| row.learn(what));
            match client.exchange(&name, args, sink).await? {
                Called::Good(output) => {
                    // What speaks in place of a text goes to programs; the model reads it behind the fence.
                    Ok(Output { text: content::fence(&server, &output.text), ..output })
                }
                Called::Bad(text) => Err(Failure::new(content::fence(&server, &text)).into()),
            }
        })
    }
}

/// What a receipt says of the server's work on a call that was given up: the server got a notice, and only an answer or the end of
/// its process says that the work is over (S3.6). What only reads is not followed.
struct Row {
    cx: ToolContext,
    server: String,
    effect: EffectClass,
    /// Held to change and copy the report. Its changes have an order: a call is abandoned before its end is looked for,
    /// and one end is reported.
    report: Mutex<RemoteReport>,
}

impl Row {
    fn learn(&self, what: Afterwards<'_>) {
        if let Afterwards::Answered(how) = what {
            self.cx.report_late(format!("was answered by the MCP server {} with {how}", self.server));
        }
        if self.effect == EffectClass::ReadOnly {
            return;
        }
        let report = {
            let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Some(Timestamp::now());
            match what {
                Afterwards::Abandoned => {
                    (report.stop, report.asked_at) = (Some(RemoteStopState::Requested), now)
                }
                Afterwards::Answered(_) => (report.replied_at, report.ended_at) = (now, now),
                Afterwards::Gone => report.ended_at = now,
            }
            report.clone()
        };
        // Not under the lock: the engine's own are taken there.
        self.cx.report_remote(report);
    }
}
