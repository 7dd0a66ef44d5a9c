struct Pair { a: i32, b: i32 }
/// Adds.
#[safepoint::tool]
async fn add(pair: Pair) -> i32 { pair.a + pair.b }
fn main() {}
