//! Spans by the conventions of OpenTelemetry for generative AI: any subscriber of `tracing` gets them.

use std::error::Error;

use safepoint::{Agent, tool};
use safepoint_models::openai;
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

/// Prints each span where it ends, with the spans that it is in.
struct Print;

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Print {
    fn on_close(&self, id: tracing::span::Id, cx: Context<'_, S>) {
        let Some(span) = cx.span(&id).filter(|span| span.metadata().target().starts_with("safepoint")) else {
            return;
        };
        let names: Vec<&str> = span.scope().from_root().map(|span| span.name()).collect();
        println!("{}", names.join(" > "));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::registry().with(Print).init();
    let clock = tool::from_fn("clock", "Says the time", |_cx, (): ()| async { Ok("noon") });
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(clock).build();
    let run = agent.run("What time is it?");
    let handle = run.handle();
    println!("{}", run.await.answer().unwrap_or_default());
    handle.quiet().await;
    Ok(())
}
