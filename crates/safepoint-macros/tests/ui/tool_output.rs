struct Sum(#[expect(dead_code)] i32);
/// Adds.
#[safepoint::tool]
async fn add(a: i32, b: i32) -> Sum { Sum(a + b) }
fn main() {}
