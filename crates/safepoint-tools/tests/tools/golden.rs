//! The golden file of the tools as a model is offered them: names, descriptions and schemas of arguments.

use safepoint_golden::Golden;
use safepoint_tools::toolbox;

#[test]
fn what_a_model_is_offered() {
    let folder = tempfile::tempdir().unwrap();
    let lines = toolbox(folder.path()).unwrap().all().into_iter().flat_map(|tool| {
        let spec = tool.spec();
        let effect = serde_json::to_string(&spec.effect).unwrap();
        let described = spec.description.replace('\n', "\\n");
        [format!("{} {effect} {:?}", spec.name, spec.timeout), described, spec.parameters.to_string()]
    });
    let lines: Vec<String> = lines.collect();
    Golden::file(env!("CARGO_MANIFEST_DIR"), "tests/golden/tools.txt").lines("tools", lines).check();
}
