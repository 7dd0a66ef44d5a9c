//! Tools that behave, and tools that do not: each waits at a gate and writes to a ledger, so that a test
//! decides when what happens and can hold the receipt against what did.

use std::sync::Arc;

use safepoint::{
    Reason, StopRequest, ToolContext, ToolResult,
    stop::{Code, Failure},
    tool::{self, FnTool, OnStop},
};

use crate::{
    ledger::{Ledger, Mark},
    tool_gate::ToolGate,
};

/// Makes tools around one ledger and one gate. Their effect is *unsafe*; `with` says otherwise.
///
/// ```
/// use safepoint::tool::EffectClass;
/// use safepoint_testkit::tools::GateTools;
/// let tools = GateTools::new();
/// let pay = tools.gated("pay");
/// let look = tools.gated("look").with(|spec| spec.effect(EffectClass::ReadOnly));
/// tools.gate().let_pass(1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct GateTools {
    ledger: Ledger,
    gate: ToolGate,
}

impl GateTools {
    /// An empty ledger and a shut gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the tools wrote.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Where they wait.
    #[must_use]
    pub fn gate(&self) -> &ToolGate {
        &self.gate
    }

    /// Enters, waits, commits. A stop drops it where it waits.
    #[must_use]
    pub fn gated(&self, name: &str) -> FnTool {
        self.tool(name, OnStop::Drop, |tools, _cx| async move {
            tools.gate.pass().await;
            Ok("done")
        })
    }

    /// Ends on a stop request, and cleans up; commits otherwise.
    #[must_use]
    pub fn polite(&self, name: &str) -> FnTool {
        self.tool(name, OnStop::Cooperate(None), |tools, cx| async move {
            let (ledger, call) = (tools.ledger.clone(), cx.call_id().clone());
            cx.on_cleanup("sweep", async move { ledger.write(&call, Mark::Cleanup) });
            cx.run(tools.gate.pass()).await?;
            Ok("done")
        })
    }

    /// Does not hear its stop: it ends only through the gate, or when its clean-up time is over.
    #[must_use]
    pub fn deaf(&self, name: &str) -> FnTool {
        self.gated(name).with(|spec| spec.on_stop(OnStop::Cooperate(None)))
    }

    /// Is given time to end by itself.
    #[must_use]
    pub fn finishing(&self, name: &str) -> FnTool {
        self.gated(name).with(|spec| spec.on_stop(OnStop::Finish(None)))
    }

    /// Returns after its fence: a stop leaves it running, and what it returns through the gate is late.
    #[must_use]
    pub fn late(&self, name: &str) -> FnTool {
        self.gated(name).with(|spec| spec.on_stop(OnStop::Detach))
    }

    /// Blocks a thread, and never looks whether it should stop. Open the gate before the test ends.
    #[must_use]
    pub fn blocking(&self, name: &str) -> FnTool {
        let tools = self.clone();
        tool::from_blocking_fn(name, "blocks at its gate", move |cx, (): ()| {
            tools.ledger.enter(cx.call_id());
            tools.gate.pass_blocking();
            tools.ledger.commit(cx.call_id());
            Ok("done")
        })
    }

    /// Never yields to the runtime until the gate is open: only for runtimes with several threads.
    #[must_use]
    pub fn spinning(&self, name: &str) -> FnTool {
        self.tool(name, OnStop::Drop, |tools, _cx| async move {
            while !tools.gate.is_open() {
                std::thread::yield_now();
            }
            Ok("done")
        })
    }

    /// Tells of its progress, `half of it`, before it waits.
    #[must_use]
    pub fn partial(&self, name: &str) -> FnTool {
        self.tool(name, OnStop::Drop, |tools, cx| async move {
            cx.progress("half of it");
            tools.gate.pass().await;
            Ok("all of it")
        })
    }

    /// Fails when it has passed the gate.
    #[must_use]
    pub fn failing(&self, name: &str) -> FnTool {
        self.tool(name, OnStop::Drop, |tools, _cx| async move {
            tools.gate.pass().await;
            Err(Failure::new("it broke").into())
        })
    }

    /// Panics when it has passed the gate.
    #[must_use]
    pub fn panicking(&self, name: &str) -> FnTool {
        self.tool(name, OnStop::Drop, |tools, cx| async move {
            tools.gate.pass().await;
            panic!("{} panics, as it was made to", cx.name())
        })
    }

    /// Disguises its stop as an ordinary failure: `cancelled`.
    #[must_use]
    pub fn disguising(&self, name: &str) -> FnTool {
        self.tool(name, OnStop::Cooperate(None), |tools, cx| async move {
            cx.run(tools.gate.pass()).await.map_err(|_stop| Failure::new("cancelled"))?;
            Ok("done")
        })
    }

    /// Swallows its stop, commits all the same, and says that all is well.
    #[must_use]
    pub fn swallowing(&self, name: &str) -> FnTool {
        self.tool(name, OnStop::Cooperate(None), |tools, cx| async move {
            if cx.run(tools.gate.pass()).await.is_err() {
                // Swallowed.
            }
            Ok("all is well")
        })
    }

    /// Asks its own run to stop `Now`, and continues to the gate.
    #[must_use]
    pub fn asking(&self, name: &str) -> FnTool {
        self.tool(name, OnStop::Cooperate(None), |tools, cx| async move {
            cx.stop_run(StopRequest::now().with_reason(Reason::new(Code::TOOL)));
            cx.run(tools.gate.pass()).await?;
            Ok("done")
        })
    }

    /// A tool that enters, does what `body` does, and commits if that ends well.
    fn tool<F, Fut>(&self, name: &str, on_stop: OnStop, body: F) -> FnTool
    where
        F: Fn(Self, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ToolResult<&'static str>> + Send + 'static,
    {
        let (tools, body) = (self.clone(), Arc::new(body));
        tool::from_fn(name, "waits for its gate", move |cx: ToolContext, (): ()| {
            let (tools, body) = (tools.clone(), Arc::clone(&body));
            async move {
                let (ledger, call) = (tools.ledger.clone(), cx.call_id().clone());
                ledger.enter(&call);
                let said = body(tools, cx).await?;
                ledger.commit(&call);
                Ok(said)
            }
        })
        .with(|spec| spec.on_stop(on_stop))
    }
}
