fn show(stop: safepoint_scope::Stop) -> String { stop.to_string() }
fn main() {}
