//! Retrieval: the texts are embedded once, and a tool finds those that are nearest to a question. The index is a list in memory.

use safepoint::{
    Agent,
    tool::{self, EffectClass},
};
use safepoint_models::{
    embed::Embedder,
    openai::{self, OpenAiEmbedder},
};

const HANDBOOK: [&str; 3] = [
    "The canteen is on the ground floor.",
    "There are thirty days of vacation a year.",
    "The doors close at eight.",
];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Question {
    question: String,
}

struct Index {
    embedder: OpenAiEmbedder,
    vectors: Vec<Vec<f32>>,
}

impl Index {
    /// The text whose vector points most nearly the same way.
    fn nearest(&self, to: &[f32]) -> &'static str {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let near = |of: &[f32]| dot(of, to) / dot(of, of).sqrt();
        let all = HANDBOOK.iter().zip(&self.vectors);
        all.max_by(|(_, one), (_, other)| near(one).total_cmp(&near(other))).map_or("", |(text, _)| text)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let embedder = openai::embedder_from_env("text-embedding-3-small")?;
    let vectors = embedder.embed(&HANDBOOK.map(str::to_owned)).await?.vectors;
    let index = Index { embedder, vectors };
    let look_up = "Finds what the handbook says";
    let look_up =
        tool::from_fn_with_state(index, "look_up", look_up, |cx, index, asked: Question| async move {
            let texts = [asked.question];
            // A stop drops the request, which closes its connection, and leaves here.
            let embedded = cx.run(index.embedder.embed(&texts)).await??;
            Ok(index.nearest(&embedded.vectors[0]))
        });
    let look_up = look_up.with(|spec| spec.effect(EffectClass::ReadOnly));
    let agent = Agent::builder(openai::from_env("gpt-5.2")?).tool(look_up).build();
    let outcome = agent.run("How many days of vacation do I have?").await;
    println!("{}", outcome.answer().unwrap_or("(none)"));
    Ok(())
}
