//! `sleep`: waits, and ends at once when it is stopped.

use std::time::Duration;

use safepoint::tool::{EffectClass, FnTool, from_fn};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{limits, root::refusal};

#[derive(Deserialize, JsonSchema)]
struct SleepArgs {
    /// How long, in seconds; fractions are allowed.
    seconds: f64,
}

/// Waits for some time.
#[must_use]
pub fn sleep() -> FnTool {
    from_fn(
        "sleep",
        "Waits for some seconds, for something else to happen.",
        |cx, args: SleepArgs| async move {
            let time = Duration::try_from_secs_f64(args.seconds)
                .ok()
                .filter(|time| time.as_secs_f64() <= limits::SLEEP_SECONDS)
                .ok_or_else(|| refusal(format!("`seconds` must be from 0 to {}", limits::SLEEP_SECONDS)))?;
            cx.run(tokio::time::sleep(time)).await?;
            Ok(format!("slept for {time:?}"))
        },
    )
    .with(|spec| spec.effect(EffectClass::ReadOnly))
}
