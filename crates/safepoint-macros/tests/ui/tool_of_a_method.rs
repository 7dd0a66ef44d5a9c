struct Sums;
impl Sums {
    /// Adds.
    #[safepoint::tool]
    async fn add(&self, a: i32, b: i32) -> i32 { a + b }
}
fn main() {}
