//! What the program writes with `--json`, against its published schema.

use std::process::Command;

use serde_json::Value;

/// S15.17: what is written of a verdict, and of what cannot be expressed, fits the published schema.
#[test]
fn what_the_program_writes_fits_the_published_schema() {
    const NAME: &str = "schema:///report";
    let target = format!("adapter:{} adapter says-so", env!("CARGO_BIN_EXE_stop-test-reference"));
    let only = ["--only", "tool", "--only", "question", "--only", "control"];
    let mut test = Command::new(env!("CARGO_BIN_EXE_stop-test"));
    let output = test.arg(target).args(only).args(["--times", "1", "--json", "-"]).output().unwrap();
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["rows"].as_array().map(Vec::len), Some(3), "{seen:#}");
    let published = serde_json::from_str(include_str!("../../../docs/schema/stop-test.json")).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource(NAME, published).unwrap();
    let schema = compiler.compile(NAME, &mut schemas).unwrap();
    let misfit = schemas.validate(&seen, schema).err().map(|error| error.to_string());
    assert_eq!(misfit, None, "{seen:#}");
}
