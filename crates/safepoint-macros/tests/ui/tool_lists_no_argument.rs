/// Adds.
///
/// # Arguments
/// * `a` - the first
/// * `c` - the second
#[safepoint::tool]
async fn add(a: i32, b: i32) -> i32 { a + b }
fn main() {}
