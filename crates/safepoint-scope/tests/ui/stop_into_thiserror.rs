#[derive(Debug, thiserror::Error)]
enum Error { #[error("stopped")] Stopped(#[from] safepoint_scope::Stop) }
fn main() {}
