/// Adds.
#[safepoint::tool(effect = "pure", on_stop = "drop 5s", timeout = "soon")]
async fn add(a: i32, b: i32) -> i32 { a + b }
/// Adds.
#[safepoint::tool(on_stop = "drop 5s")]
async fn sum(a: i32, b: i32) -> i32 { a + b }
/// Adds.
#[safepoint::tool(timeout = "soon")]
async fn plus(a: i32, b: i32) -> i32 { a + b }
fn main() {}
