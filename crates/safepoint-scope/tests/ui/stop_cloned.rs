fn keep(stop: &safepoint_scope::Stop) -> safepoint_scope::Stop { stop.clone() }
fn main() {}
