/// Adds.
#[safepoint::tool(efect = "read_only")]
async fn add(a: i32, b: i32) -> i32 { a + b }
fn main() {}
