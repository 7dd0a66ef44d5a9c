//! The two tools of the comparison. Every loop runs these functions.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) const ECHO: &str = "echo";
pub(crate) const NAP: &str = "nap";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct EchoArgs {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NapArgs {
    ms: u64,
}

/// How many naps have begun in this process.
static NAPS: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn echo(args: EchoArgs) -> String {
    args.text
}

pub(crate) async fn nap(args: NapArgs) -> String {
    // Relaxed: a count that a measurement looks at until it has grown.
    NAPS.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(args.ms)).await;
    "rested".to_owned()
}

pub(crate) fn naps() -> usize {
    // Relaxed: nothing else is read by it.
    NAPS.load(Ordering::Relaxed)
}
