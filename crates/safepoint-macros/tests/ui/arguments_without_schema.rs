#[derive(serde::Deserialize)]
struct Pair { a: i32, b: i32 }
fn main() {
    let _ = safepoint::tool::from_fn("add", "Adds", |_cx, pair: Pair| async move { Ok(pair.a + pair.b) });
}
