//! Recipes of this workspace.
fn main() {}
