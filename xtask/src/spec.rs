//! `spec`: each clause with the tests that cite it, or with the issue that owes it, or with neither.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

use crate::source::{self, File};

/// Prints the table of clauses. With `--strict` a clause that no test cites and nothing defers fails the recipe.
pub(crate) fn spec(args: &[String]) -> anyhow::Result<()> {
    let files = source::all()?;
    let text = |path: &str| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let clauses = clauses(text("docs/spec.md").context("docs/spec.md is missing")?);
    let deferred = deferred(text("docs/deferred.toml").context("docs/deferred.toml is missing")?);
    let mut cited: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.path.starts_with("xtask/")) {
        for (clause, test) in citations(file) {
            cited.entry(clause).or_default().push(test);
        }
    }
    let mut faults = Vec::new();
    for (clause, words) in &clauses {
        match (cited.get(clause), deferred.get(clause)) {
            (Some(tests), missing) => {
                let rest =
                    missing.map(|issue| format!(" (the rest is deferred: {issue})")).unwrap_or_default();
                println!("{clause:<6} {words:<44} {} tests: {}{rest}", tests.len(), shown(tests));
            }
            (None, Some(issue)) => println!("{clause:<6} {words:<44} deferred: {issue}"),
            (None, None) => {
                println!("{clause:<6} {words:<44} NONE");
                faults.push(format!("no test cites {clause}, and nothing defers it"));
            }
        }
    }
    let known = |clause: &str| clauses.iter().any(|(known, _)| known == clause);
    let tested = clauses.iter().filter(|(clause, _)| cited.contains_key(clause)).count();
    println!("\n{} clauses, {tested} with tests, {} with neither", clauses.len(), faults.len());
    for (clause, tests) in cited.iter().filter(|(clause, _)| !known(clause)) {
        faults.push(format!("{} cites {clause}, which is no clause", shown(tests)));
    }
    faults.extend(
        deferred
            .keys()
            .filter(|clause| !known(clause))
            .map(|name| format!("{name} is deferred and no clause")),
    );
    faults.iter().for_each(|fault| println!("{fault}"));
    let is_strict = args.iter().any(|arg| arg == "--strict");
    if is_strict && !faults.is_empty() {
        bail!("{} faults: name the clause in a test, or what owes it in docs/deferred.toml", faults.len());
    }
    Ok(())
}

fn shown(tests: &[String]) -> String {
    const MOST: usize = 3;
    let mut shown = tests.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if tests.len() > MOST {
        shown.push_str(", …");
    }
    shown
}

/// `- **S1.1** words …`, and `**I1** words …` inside the last section.
fn clauses(spec: &str) -> Vec<(String, String)> {
    const WORDS: usize = 42;
    let mut found = Vec::new();
    for part in spec.split("**").collect::<Vec<_>>().windows(2) {
        let name = part[0];
        let known = found.iter().any(|(clause, _)| clause == name);
        if is_clause(name) && !known {
            let words: String =
                part[1].trim().lines().next().unwrap_or_default().chars().take(WORDS).collect();
            found.push((name.to_owned(), words));
        }
    }
    found
}

fn is_clause(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    match text.strip_prefix('S') {
        Some(rest) => rest.split_once('.').is_some_and(|(section, number)| digits(section) && digits(number)),
        None => text.strip_prefix('I').is_some_and(digits),
    }
}

/// Each deferred clause with the issue that owes it: `["issue"]`, then `"S6.1" = "why"` a line.
fn deferred(text: &str) -> BTreeMap<String, String> {
    let mut issue = String::new();
    let mut missing = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix("[\"").and_then(|line| line.strip_suffix("\"]")) {
            issue = header.to_owned();
        } else if let Some((clause, _)) = line.split_once('=') {
            let clause = clause.trim().trim_matches('"');
            if is_clause(clause) {
                missing.insert(clause.to_owned(), issue.clone());
            }
        }
    }
    missing
}

/// The clauses that a file's tests cite: in the doc comment of a test, or, in a file of tests, in the file's own.
fn citations(file: &File) -> Vec<(String, String)> {
    let name = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    let mut found = Vec::new();
    let mut docs: Vec<String> = Vec::new();
    let mut is_test = false;
    for line in file.text.lines().map(str::trim_start) {
        if let Some(doc) = line.strip_prefix("///") {
            docs.extend(named(doc));
        } else if let Some(doc) = line.strip_prefix("//!") {
            if file.is_test() {
                found.extend(named(doc).into_iter().map(|clause| (clause, format!("{name}.rs"))));
            }
        } else if line.starts_with("#[") {
            is_test |= line.contains("test");
        } else {
            if let Some(rest) =
                line.split("fn ").nth(1).filter(|_| is_test || file.text.contains("proptest!"))
            {
                let test = rest.split(['(', '<']).next().unwrap_or_default();
                found.extend(docs.drain(..).map(|clause| (clause, format!("{name}::{test}"))));
            }
            docs.clear();
            is_test = false;
        }
    }
    found
}

/// Clauses named in a text: `S1.4`, `S2.1–S2.3`, `I1-I6`.
fn named(text: &str) -> Vec<String> {
    let words: Vec<&str> =
        text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '–' | '-'))).collect();
    words
        .into_iter()
        .map(|word| word.trim_matches(['.', '-', '–']))
        .flat_map(|word| match word.split_once(['–', '-']) {
            Some((from, to)) if is_clause(from) && is_clause(to) => range(from, to),
            _ if is_clause(word) => vec![word.to_owned()],
            _ => Vec::new(),
        })
        .collect()
}

fn range(from: &str, to: &str) -> Vec<String> {
    let split = |text: &str| {
        let at = text.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
        (text[..at].to_owned(), text[at..].parse::<u32>().unwrap_or(0))
    };
    let ((prefix, first), (_, last)) = (split(from), split(to));
    (first..=last).map(|number| format!("{prefix}{number}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_found_in_the_text() {
        let spec = "- **S1.1** A request is.\n- **S10.2** More.\nThese hold. **I1** one. **not** this";
        let names: Vec<String> = clauses(spec).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["S1.1", "S10.2", "I1"]);
    }

    #[test]
    fn citations_are_found_above_tests_only() {
        let text = "//! Tests.\n/// S1.4, S2.1–S2.3: a fact.\n#[test]\nfn a() {}\n/// S9.9\nfn b() {}\n";
        let found = citations(&File::of("crates/x/tests/x.rs", text));
        let names: Vec<&str> = found.iter().map(|(clause, _)| clause.as_str()).collect();
        assert_eq!(names, ["S1.4", "S2.1", "S2.2", "S2.3"]);
    }

    #[test]
    fn what_is_deferred_names_its_issue() {
        let text =
            "# said\n[\"durable\"]\n\"S7.1\" = \"no store\"\n[\"sessions\"]\n\"S6.1\" = \"no inbox\"\n";
        let missing: Vec<(String, String)> = deferred(text).into_iter().collect();
        assert_eq!(missing, [("S6.1".into(), "sessions".into()), ("S7.1".into(), "durable".into())]);
    }
}
