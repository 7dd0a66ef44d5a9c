use safepoint::{Agent, Model};
async fn add(a: i32, b: i32) -> i32 { a + b }
fn agent(model: impl Model) -> Agent {
    Agent::builder(model).tool(add).build()
}
fn main() {}
