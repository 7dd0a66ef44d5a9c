/// Adds.
#[safepoint::tool]
async fn add<T: std::ops::Add>(a: T, b: T) -> String { drop(a + b); String::new() }
fn main() {}
