//! An agent that is elsewhere, and is never reached.

use safepoint::{
    ToolContext,
    raw::remote::{Remote, RemoteCall, RemoteSpec, RemoteTask},
};

/// It has this description.
pub(crate) struct Elsewhere(pub(crate) RemoteSpec);

impl Remote for Elsewhere {
    fn spec(&self) -> &RemoteSpec {
        &self.0
    }
    fn open(&self, _: RemoteTask, _: &ToolContext) -> Box<dyn RemoteCall> {
        panic!("nothing is sent")
    }
}
