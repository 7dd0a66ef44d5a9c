//! `bench`: the primitives by criterion, everything else by the end-to-end runner.

use crate::cargo;

/// `primitives` runs the bench targets of the scope; anything else goes to the runner.
pub(crate) fn bench(args: &[String]) -> anyhow::Result<()> {
    let (mut recipe, args) = match args {
        [first, rest @ ..] if first == "primitives" => {
            (vec!["bench", "--package", "safepoint-scope", "--"], rest)
        }
        all => (vec!["run", "--release", "--package", "safepoint-bench", "--"], all),
    };
    recipe.extend(args.iter().map(String::as_str));
    cargo::run(&recipe)
}
