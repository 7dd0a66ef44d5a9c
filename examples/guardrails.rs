//! Guardrails: a question off the topic is answered without the model, a call that is never allowed is refused, and what must
//! not be seen is taken out of the text before anyone sees it.

use safepoint::{
    Agent,
    history::Message,
    hook::{self, CallVerdict, ModelVerdict},
    tool,
};
use safepoint_models::openai;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Table {
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let drop_table = tool::from_fn("drop_table", "Drops a table", |_cx, table: Table| async move {
        Ok(format!("{} is gone", table.name))
    });
    let on_topic = hook::before_model("on-topic", |_round, history| {
        match history.entries().last().map(|last| &**last) {
            Some(Message::User(asked)) if asked.text.contains("poem") => {
                ModelVerdict::Answer("I only talk about the database.".into())
            }
            _ => ModelVerdict::Proceed,
        }
    });
    let tables_stay = hook::before_call("tables-stay", |call| match call.name.as_str() {
        "drop_table" => CallVerdict::Refuse("tables stay".into()),
        _ => CallVerdict::Proceed,
    });
    let no_keys = hook::on_text("no-keys", |text| text.replace("k-4711", "[key]"));
    let model = openai::from_env("gpt-5.2")?;
    let agent =
        Agent::builder(model).tool(drop_table).hooks(on_topic).hooks(tables_stay).hooks(no_keys).build();
    for question in ["Write a poem.", "Drop the table of orders, and tell me the key."] {
        println!("{}", agent.run(question).await.answer().unwrap_or("(none)"));
    }
    Ok(())
}
