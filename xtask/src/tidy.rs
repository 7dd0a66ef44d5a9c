//! Style as tests: each rule looks at a file and says where it is broken and what to do.

use anyhow::bail;

use crate::{
    api,
    figures::circles,
    source::{self, File},
};

mod argued;
mod binary;
mod clocks;
mod docs;
mod edges;
mod effects;
mod golden;
mod impls;
mod links;
mod names;
mod parts;
mod place;
mod plain;
mod prints;
mod shape;
mod waits;
mod words;

/// One place where a rule is broken.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    line: usize,
    what: String,
}

impl Fault {
    fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

type Rule = fn(&File) -> Vec<Fault>;

/// Every rule, by the name that its faults show.
const RULES: [(&str, Rule); 25] = [
    ("purpose", shape::opens_with_its_purpose),
    ("size", shape::is_not_too_long),
    ("inline-tests", shape::keeps_inline_tests_short),
    ("mod-rs", shape::has_no_mod_rs),
    ("fields", parts::has_few_fields),
    ("escape-hatch", words::has_no_escape_hatch),
    ("todo", words::owes_nothing_unnamed),
    ("glossary", words::keeps_the_glossary),
    ("words", plain::is_plain),
    ("machine", words::names_no_machine),
    ("flag", words::names_no_flag),
    ("cancel-safety", docs::says_what_a_drop_loses),
    ("enums", docs::decides_about_its_enums),
    ("select", effects::selects_only_where_it_may),
    ("spawn", effects::spawns_only_where_it_may),
    ("command", effects::starts_processes_only_where_it_may),
    ("lock", effects::locks_only_where_it_may),
    ("exit", effects::exits_only_where_it_may),
    ("clock", clocks::asks_for_time_and_ids_in_one_place),
    ("argued", argued::argues_its_interleavings),
    ("wait", waits::waits_by_the_helper),
    ("print", prints::prints_only_where_it_may),
    ("crate-edge", edges::crate_edges),
    ("module-edge", edges::module_edges),
    ("cli-edge", edges::cli_edges),
];

/// How many differences of one `api.txt` are shown.
const SHOWN: usize = 10;

/// Runs every rule over every file.
pub(crate) fn tidy() -> anyhow::Result<()> {
    let files = source::all()?;
    let mut faults = 0;
    for file in &files {
        for (name, rule) in RULES {
            for fault in rule(file) {
                println!("{}:{}: {name}: {}", file.path, fault.line, fault.what);
                faults += 1;
            }
        }
    }
    for (name, found) in [
        ("place", place::faults()?),
        ("binary", binary::faults()?),
        ("golden", golden::faults(&files)),
        ("impl-home", impls::faults(&files)),
        ("one-name", names::faults(&files)),
        ("link", links::faults(&files)?),
    ] {
        for (path, fault) in found {
            println!("{path}:{}: {name}: {}", fault.line, fault.what);
            faults += 1;
        }
    }
    for name in circles::NONE_BETWEEN_FOLDERS {
        for ring in circles::between_folders(&files, name)? {
            println!(
                "crates/{name}/src:1: circles: these import each other, none can be read before another: {ring}"
            );
            faults += 1;
        }
    }
    for api in api::apis(&files)? {
        for fault in &api.faults {
            println!("{}:1: api: {fault}", api.path);
        }
        let differences = api.differences(&files);
        for difference in differences.iter().take(SHOWN) {
            println!("{}:1: api: {difference}", api.path);
        }
        if !differences.is_empty() {
            println!("{}:1: api: not what the crate shows; run `cargo xtask api --write`", api.path);
        }
        faults += differences.len() + api.faults.len();
    }
    if faults > 0 {
        bail!("{faults} faults; CONTRIBUTING.md has the rules and their reasons");
    }
    println!("tidy: {} files, no faults", files.len());
    Ok(())
}

/// For the tests of rules: the lines at which a file of this text is broken.
#[cfg(test)]
fn broken(rule: Rule, path: &str, text: &str) -> Vec<usize> {
    rule(&File::of(path, text)).into_iter().map(|fault| fault.line).collect()
}
