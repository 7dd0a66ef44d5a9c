//! A tool whose output is cleaned before anything is done with it.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde_json::Value;

use super::Secrets;
use crate::contract::tool::{Tool, ToolContext, ToolResult, ToolSpec};

/// A tool that tells no secret.
pub(crate) struct CleanTool {
    pub(crate) inner: Arc<dyn Tool>,
    pub(crate) secrets: Secrets,
}

impl Tool for CleanTool {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn call(&self, cx: ToolContext, args: Value) -> BoxFuture<'static, ToolResult> {
        let (done, secrets) = (self.inner.call(cx, args), self.secrets.clone());
        Box::pin(async move { done.await.map(|output| secrets.clean_output(output)) })
    }
}
