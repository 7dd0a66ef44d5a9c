fn fails() -> safepoint::ToolResult<()> { Err("no")? }
fn main() -> Result<(), Box<dyn std::error::Error>> {
    fails()?;
    Ok(())
}
