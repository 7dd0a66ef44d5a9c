use safepoint_scope::Scope;
async fn tool(scope: Scope) { scope.settle().await; }
fn main() {}
