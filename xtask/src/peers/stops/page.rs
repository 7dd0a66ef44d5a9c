//! `docs/stops.md`: what the verdicts mean, the table of all targets, and beneath it each of them with its reasons.

use std::{fmt::Write as _, path::Path};

use super::{
    kept::{Kept, KeptRow, VERDICTS},
    recipe::Recipe,
};

/// What stands above the table.
const HEAD: &str = r#"# What the stop of an agent really does

<!-- Written by `cargo xtask stop-table`; what is beneath this line is not written by hand. -->

You press stop. Three things can be true of what you see next, and only one of them is good:

- The work has ended: the model sends no more tokens, the tool does nothing more, the command is dead.
- You have your prompt back, and the work goes on without you: tokens are paid, files change, a payment is made.
- You are told "cancelled", and it is not so.

Neither can be seen from the outside, so [`stop-test`](guides/stop-test.md) looks from the inside: it plays the model and the
tools, stops the agent in its own documented way at each moment where stops are known to fail, and compares what was said with what was so.

![The line of time of an honest and of a dishonest stop](pictures/two-stops.svg)

| verdict | what it means |
|---|---|
| ends | the work had ended when the caller was told so |
| ends late | the caller was told first; the work ended by itself within two seconds |
| says so | work continues, and the target names it |
| lets go | the caller has control back, work continues, and nothing says so |
| goes on | the stop had no effect |
| lies | the target says that it ended, and it had not |
| breaks | the target hangs or crashes, or its conversation cannot be continued |

Work counts as ended at the same moment as the word if it ended at most 50 ms later; a caller that has no control after ten seconds has
none. Each row is driven three times, from an empty folder and an empty home, with the target's own defaults. `lies` also stands where a
caller is told `done` or `failed` of work that did not end. A library has no commands of its own and a program has none of our tools, so
each has columns that cannot be expressed. The machine has two cores and other work: read the words, and not the milliseconds. Is a row
unfair to your project? Run its line, and tell us.
"#;

/// The columns, by the names of their scenarios.
const COLUMNS: [(&str, &str); 15] = [
    ("at-once", "at once"),
    ("headers-awaited", "model awaited"),
    ("stream-silent", "silent stream"),
    ("stream-drips", "stream"),
    ("in-arguments", "in a call"),
    ("tool", "tool"),
    ("tool-deaf", "deaf tool"),
    ("command", "command"),
    ("command-apart", "setsid"),
    ("one-of-three", "1 of 3"),
    ("question", "question"),
    ("retry", "retry"),
    ("twice", "twice"),
    ("sixteen", "16 times"),
    ("after-end", "after"),
];

/// The whole page.
pub(super) fn written(recipes: &[Recipe], results: &Path, driven: &Path) -> anyhow::Result<String> {
    let mut page = HEAD.to_owned();
    let mut details = String::new();
    write!(page, "\n| target | of | way |")?;
    COLUMNS.iter().try_for_each(|(_, title)| write!(page, " {title} |"))?;
    writeln!(page, "\n|---|---|---|{}", "---|".repeat(COLUMNS.len()))?;
    for recipe in recipes {
        let kept = Kept::read(&results.join(format!("{}.json", recipe.id))).ok();
        lines(&mut page, recipe, kept.as_ref())?;
        detail(&mut details, recipe, kept.as_ref())?;
    }
    writeln!(
        page,
        "\n`*`: it varied between repetitions; the worst is shown. `·`: it cannot be expressed, or see below. Ways that are meant to wait for a boundary are not driven.\n"
    )?;
    page.push_str("## Each target\n");
    page.push_str(&details);
    by_ours(&mut page, recipes, driven)?;
    Ok(page)
}

/// A line for each way to stop it.
fn lines(page: &mut String, recipe: &Recipe, kept: Option<&Kept>) -> anyhow::Result<()> {
    let Some(kept) = kept else {
        writeln!(
            page,
            "| [{}](#{}) | {} | |{}",
            recipe.name,
            recipe.id,
            recipe.language,
            " · |".repeat(COLUMNS.len())
        )?;
        return Ok(());
    };
    for way in kept.ways().into_iter().filter(|way| *way != "none") {
        write!(
            page,
            "| [{} {}](#{}) | {} | `{way}` |",
            recipe.name, kept.version, recipe.id, recipe.language
        )?;
        for (scenario, _) in COLUMNS {
            match kept.worst(scenario, way) {
                Some((worst, varies)) => {
                    let is_bad = matches!(worst, "lets-go" | "goes-on" | "lies" | "breaks");
                    let (bold, mark) = (if is_bad { "**" } else { "" }, if varies { "\\*" } else { "" });
                    write!(page, " {bold}{}{bold}{mark} |", worst.replace('-', " "))?;
                }
                None => write!(page, " · |")?,
            }
        }
        writeln!(page)?;
    }
    Ok(())
}

/// What our own program said of the stops of those that it drove.
fn by_ours(page: &mut String, recipes: &[Recipe], driven: &Path) -> anyhow::Result<()> {
    let read = |recipe: &Recipe| {
        Some((recipe.name.clone(), Kept::read(&driven.join(format!("{}.json", recipe.id))).ok()?))
    };
    let all: Vec<(String, Kept)> = recipes.iter().filter_map(read).collect();
    if all.is_empty() {
        return Ok(());
    }
    let stops = |kept: &Kept, word: Option<&str>| -> usize {
        let of_a_stop = kept.rows.iter().filter(|row| row.way != "none").flat_map(|row| &row.verdicts);
        of_a_stop
            .filter(|(verdict, _)| word.is_none_or(|word| **verdict == *word))
            .map(|(_, times)| times)
            .sum()
    };
    writeln!(
        page,
        "\n## Driven by Safepoint\n\nThe same moments, with `safepoint run --backend acp:…` in front: it is stopped by `SIGINT` once and twice, `SIGTERM` and \
         `SIGHUP`, and its receipt is what is judged. `lies` would be a receipt that says of work that it ended, and it had not.\n"
    )?;
    write!(page, "| target | stops |")?;
    VERDICTS.iter().try_for_each(|word| write!(page, " {} |", word.replace('-', " ")))?;
    writeln!(page, "\n|---|---|{}", "---|".repeat(VERDICTS.len()))?;
    for (name, kept) in &all {
        write!(page, "| {name} {} | {} |", kept.version, stops(kept, None))?;
        VERDICTS.iter().try_for_each(|word| write!(page, " {} |", stops(kept, Some(word))))?;
        writeln!(page)?;
    }
    let sum = |word| all.iter().map(|(_, kept)| stops(kept, word)).sum::<usize>();
    writeln!(page, "\nIn all {} stops, of which {} are `lies`.", sum(None), sum(Some("lies")))?;
    Ok(())
}

fn detail(page: &mut String, recipe: &Recipe, kept: Option<&Kept>) -> anyhow::Result<()> {
    writeln!(page, "\n### {}\n\n{}. ", recipe.id, recipe.name)?;
    let Some(kept) = kept else {
        let why = recipe.skip.as_deref().unwrap_or("it was not driven yet");
        writeln!(page, "Not driven: {why}.")?;
        return Ok(());
    };
    let old = if kept.version == recipe.version {
        String::new()
    } else {
        format!("; its recipe is of {} now", recipe.version)
    };
    writeln!(
        page,
        "Version {}, on {}{old}. Again: `cargo xtask stop-table {}`. Its ways to stop:",
        kept.version, kept.date, recipe.id
    )?;
    recipe.stop.iter().try_for_each(|(way, at)| writeln!(page, "- `{way}`: <{at}>"))?;
    if let Some(note) = &recipe.note {
        writeln!(page, "\n{note}")?;
    }
    let control = kept.rows.iter().find(|row| row.scenario == "control" && !row.verdicts.is_empty());
    if let Some(control) = control.filter(|row| !row.verdicts.contains_key("ends")) {
        writeln!(page, "\nWithout a stop: {}. That is not held against its stop.", cell(&control.because))?;
    }
    let (judged, not): (Vec<&KeptRow>, Vec<&KeptRow>) =
        kept.rows.iter().partition(|row| !row.verdicts.is_empty());
    writeln!(page, "\n| scenario | way | verdict | because |\n|---|---|---|---|")?;
    for row in judged {
        let counted =
            row.verdicts.iter().map(|(word, times)| format!("{} ({times})", word.replace('-', " ")));
        let counted: Vec<String> = counted.collect();
        writeln!(
            page,
            "| {} | `{}` | {} | {} |",
            row.scenario,
            row.way,
            counted.join(", "),
            cell(&row.because)
        )?;
    }
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for row in not {
        match reasons.iter_mut().find(|(why, _)| *why == row.because) {
            Some((_, names)) if names.contains(&&*row.scenario) => {}
            Some((_, names)) => names.push(&row.scenario),
            None => reasons.push((row.because.clone(), vec![&row.scenario])),
        }
    }
    if !reasons.is_empty() {
        writeln!(page)?;
    }
    reasons.iter().try_for_each(|(why, names)| writeln!(page, "- {}: {}", names.join(", "), cell(why)))?;
    Ok(())
}

/// Words in a cell of a table; long ones are cut.
fn cell(words: &str) -> String {
    const MOST: usize = 240;
    let cut: String = words.chars().take(MOST).collect();
    let more = if cut.len() < words.len() { "…" } else { "" };
    format!("{}{more}", cut.replace('|', "\\|").replace('<', "&lt;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S15.7: each recipe can be read, and names a page for each way to stop; the table says what it does not know.
    #[test]
    fn each_recipe_has_a_page_for_each_way_and_a_place_in_the_table() {
        let recipes = Recipe::all(&super::super::recipes()).unwrap();
        assert_eq!(
            recipes.len(),
            std::fs::read_dir(super::super::recipes()).unwrap().count(),
            "a folder has no recipe"
        );
        let page = written(&recipes, Path::new("/nowhere"), Path::new("/nowhere")).unwrap();
        for recipe in &recipes {
            assert!(page.contains(&format!("\n### {}\n", recipe.id)), "{}", recipe.id);
        }
        assert!(page.contains("Not driven: it was not driven yet."));
    }

    /// S15.7: a row that is older than its recipe says so.
    #[test]
    fn a_row_of_another_version_says_so() {
        let recipes = Recipe::all(&super::super::recipes()).unwrap();
        let recipe = recipes.iter().find(|recipe| recipe.is_ours()).unwrap();
        let row = KeptRow {
            number: 3,
            scenario: "stream-silent".into(),
            way: "sigint".into(),
            verdicts: [("lies".to_owned(), 2), ("ends".to_owned(), 1)].into(),
            because: "a | b".into(),
            is_unexpressed: false,
        };
        let kept =
            Kept { name: "it".into(), version: "0.0.1".into(), date: "2026-11-28".into(), rows: vec![row] };
        let (mut table, mut below) = (String::new(), String::new());
        lines(&mut table, recipe, Some(&kept)).unwrap();
        detail(&mut below, recipe, Some(&kept)).unwrap();
        assert!(table.contains(" **lies**\\* |"), "{table}");
        assert!(below.contains("Version 0.0.1, on 2026-11-28; its recipe is of 0.1.0 now."), "{below}");
        assert!(below.contains("| stream-silent | `sigint` | ends (1), lies (2) | a \\| b |"), "{below}");
    }
}
