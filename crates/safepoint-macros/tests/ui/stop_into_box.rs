/// Waits.
#[safepoint::tool]
async fn wait(cx: &safepoint::ToolContext) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    cx.run(std::future::pending::<()>()).await?;
    Ok(())
}
fn main() {}
