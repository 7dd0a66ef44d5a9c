//! Hooks: one closure changes the arguments of a call, another its result before anything else sees it. Both are recorded.

use std::error::Error;

use futures_util::StreamExt as _;
use safepoint::{
    Agent,
    event::{EventKind, Fact, HookAction, RunItem},
    hook::{self, CallVerdict, ResultVerdict},
    tool,
};
use safepoint_models::openai;
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Release {
    target: String,
    dry_run: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let deploy = tool::from_fn("deploy", "Deploys a release", |_cx, release: Release| async move {
        let how = if release.dry_run { "would be" } else { "is" };
        Ok(format!("{} {how} deployed with the key k-4711", release.target))
    });
    let dry_run = hook::before_call("dry-run", |call| match call.name.as_str() {
        "deploy" => CallVerdict::Change(json!({"target": call.args["target"], "dry_run": true})),
        _ => CallVerdict::Proceed,
    });
    let no_keys = hook::on_result("no-keys", |result| {
        ResultVerdict::Change(result.text.replace("k-4711", "[key]").into())
    });
    let model = openai::from_env("gpt-5.2")?;
    let agent = Agent::builder(model).tool(deploy).hooks(dry_run).hooks(no_keys).build();
    let mut items = agent.run("Deploy the shop.").into_stream();
    while let Some(item) = items.next().await {
        match item {
            RunItem::Event(event) => {
                if let EventKind::Fact(fact) = event.kind {
                    show(&fact);
                }
            }
            RunItem::Outcome(outcome) => println!("{}", outcome.answer().unwrap_or("(none)")),
        }
    }
    Ok(())
}

fn show(fact: &Fact) {
    match fact {
        Fact::HookActed(acted) => match &acted.action {
            HookAction::ArgsChanged { args, .. } => println!("{} changed the arguments: {args}", acted.hook),
            _ => println!("{} changed the result", acted.hook),
        },
        Fact::CallEnded { result, .. } => println!("the model gets: {}", result.text),
        _ => {}
    }
}
