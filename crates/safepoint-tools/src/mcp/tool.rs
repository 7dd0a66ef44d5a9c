//! A server's tool as one that the engine runs.

use futures_util::future::BoxFuture;
use safepoint::{
    Cx, Failure, Tool,
    tool::{EffectClass, OnStop, Output, ToolResult, ToolSpec},
};
use serde_json::Value;

use super::{
    Client,
    client::Called,
    listing::{Hints, Told},
    notices::Sink,
    reading,
    server::{Annotations, Server},
};

/// One tool. It keeps its server.
pub(super) struct McpTool {
    spec: ToolSpec,
    client: Client,
    name: String,
}

impl McpTool {
    pub(super) fn new(client: Client, server: &Server, told: Told) -> Self {
        let effect = match (server.annotations, told.hints) {
            (Annotations::Trusted, Hints::ReadOnly) => EffectClass::ReadOnly,
            (Annotations::Trusted, Hints::Idempotent) => EffectClass::Idempotent,
            (Annotations::Trusted, Hints::Nothing) | (Annotations::Ignored, _) => EffectClass::Unsafe,
        };
        // A stop waits for nothing: the future is dropped, which tells the server.
        let mut spec = ToolSpec::new(told.offered, told.description)
            .parameters(told.schema)
            .effect(effect)
            .on_stop(OnStop::Drop);
        spec.timeout = server.call;
        Self { spec, client, name: told.name }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, cx: Cx, args: Value) -> BoxFuture<'static, ToolResult> {
        let (client, name) = (self.client.clone(), self.name.clone());
        Box::pin(async move {
            let server = client.name().to_owned();
            let (of, afterwards) = (server.clone(), cx.clone());
            let late =
                move |how: &str| afterwards.late(format!("was answered by the MCP server {of} with {how}"));
            let sink = Sink::new(move |text| cx.progress(text), late);
            match client.exchange(&name, args, sink).await? {
                Called::Good(output) => {
                    // What speaks in place of a text goes to programs; the model reads it behind the fence.
                    Ok(Output { text: reading::fence(&server, &output.text), ..output })
                }
                Called::Bad(text) => Err(Failure::new(reading::fence(&server, &text)).into()),
            }
        })
    }
}
