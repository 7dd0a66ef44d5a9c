async fn work(scope: &safepoint_scope::Scope) -> Result<(), Box<dyn std::error::Error>> { scope.run(async {}).await?; Ok(()) }
fn main() {}
