//! Tools with a state, two ways: a type with its state in its fields, and a closure that all calls share. A tool returns
//! text, a number or a value as JSON, and `?` takes every error.

use std::{error::Error, sync::Mutex};

use safepoint::{
    Agent, ToolContext, ToolResult,
    history::Message,
    tool::{self, EffectClass, Json, ToolSpec, TypedTool},
};
use safepoint_models::openai;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Book {
    /// A part of its title.
    title: String,
}

/// The books of a library.
struct Catalogue(Vec<&'static str>);

impl TypedTool for Catalogue {
    const NAME: &'static str = "find";
    const DESCRIPTION: &'static str = "Finds books";
    type Args = Book;
    type Output = Json<Vec<&'static str>>;

    fn declare(&self, spec: ToolSpec) -> ToolSpec {
        spec.effect(EffectClass::ReadOnly)
    }

    async fn call(&self, _cx: ToolContext, wanted: Book) -> ToolResult<Self::Output> {
        Ok(Json(self.0.iter().copied().filter(|book| book.contains(&wanted.title)).collect()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let lent = Mutex::new(Vec::new());
    let lend = tool::from_fn_with_state(lent, "lend", "Lends a book", |_cx, lent, book: Book| async move {
        let mut lent = lent.lock().map_err(|_poisoned| "the list of loans is lost")?;
        if lent.contains(&book.title) {
            Err(format!("{} is lent already", book.title))?;
        }
        lent.push(book.title);
        Ok(lent.len())
    });
    let catalogue = Catalogue(vec!["Middlemarch", "Moby-Dick", "Emma"]);
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(catalogue).tool(lend).build();
    let outcome = agent.run("Lend me the one with the whale.").await;
    for message in outcome.history().entries() {
        let Message::Results { results } = &**message else { continue };
        results.iter().for_each(|result| println!("{}: {}", result.name, result.text));
    }
    println!("{}", outcome.answer().unwrap_or("no answer"));
    Ok(())
}
