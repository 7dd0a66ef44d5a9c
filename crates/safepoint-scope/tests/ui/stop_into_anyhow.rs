async fn work(scope: &safepoint_scope::Scope) -> anyhow::Result<()> { scope.run(async {}).await?; Ok(()) }
fn main() {}
