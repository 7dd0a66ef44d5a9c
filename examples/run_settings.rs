//! What belongs to one run: values that its tools take by their types, instructions that are made from them, and limits
//! and a tool of its own. The agent stays as it is.

use std::error::Error;

use safepoint::{Agent, Limits, history::Message, tool};
use safepoint_models::openai;

struct User {
    name: &'static str,
    is_admin: bool,
}

/// Says who asks.
#[tool(effect = "read_only")]
async fn who(#[context] user: &User) -> String {
    format!("{}, admin: {}", user.name, user.is_admin)
}

/// Resets the counter.
#[tool]
async fn reset(#[context] user: &User) -> Result<&'static str, &'static str> {
    if user.is_admin { Ok("reset") } else { Err("only an admin resets it") }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let agent = Agent::builder(openai::from_env("gpt-5.2")?)
        .tool(who)
        .system_with(|cx| Ok(format!("You talk to {}.", cx.get::<User>()?.name)))
        .build();
    let limits = || Limits::default().with_max_rounds(3);
    let ana = User { name: "Ana", is_admin: true };
    let bo = User { name: "Bo", is_admin: false };
    for user in [ana, bo] {
        let outcome = agent.run("Reset the counter.").with(user).tool(reset).limits(limits()).await;
        for message in outcome.history().entries() {
            let Message::Results { results } = &**message else { continue };
            results.iter().for_each(|result| println!("{}: {}", result.name, result.text));
        }
        println!("{}", outcome.answer().unwrap_or("no answer"));
    }
    Ok(())
}
