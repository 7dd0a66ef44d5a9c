//! The recipes of the table, as a reader of the repository finds them.

use std::{fs, path::Path};

/// S15.7: each recipe names a page for each way to stop its target, and is of one version; or says why it is not driven.
#[test]
fn each_way_of_a_recipe_names_its_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets");
    let mut recipes = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path().join("target.toml");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(text.contains("\nversion = \""), "{}", path.display());
        recipes += 1;
        let Some((_, ways)) = text.split_once("\n[stop]\n") else {
            assert!(text.contains("\nskip = \""), "{} names no way", path.display());
            continue;
        };
        let ways: Vec<&str> = ways
            .lines()
            .take_while(|line| !line.starts_with('['))
            .filter(|line| line.contains('='))
            .collect();
        assert!(
            !ways.is_empty() && ways.iter().all(|way| way.contains("= \"https://")),
            "{}: {ways:?}",
            path.display()
        );
    }
    assert!(recipes >= 16, "{recipes} recipes");
}
