//! `docs/stops.md`: what the verdicts mean, the table of all targets, and beneath it each of them with its reasons.

use std::{fmt::Write as _, path::Path};

use super::{
    kept::{Kept, KeptRow},
    recipe::Recipe,
};

const HEAD: &str = include_str!("head.md");

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
pub(super) fn written(recipes: &[Recipe], results: &Path) -> anyhow::Result<String> {
    let mut page = HEAD.to_owned();
    let mut details = String::new();
    write!(page, "\n| target | of |")?;
    COLUMNS.iter().try_for_each(|(_, title)| write!(page, " {title} |"))?;
    writeln!(page, "\n|---|---|{}", "---|".repeat(COLUMNS.len()))?;
    for recipe in recipes {
        let kept = Kept::read(&results.join(format!("{}.json", recipe.id))).ok();
        line(&mut page, recipe, kept.as_ref())?;
        detail(&mut details, recipe, kept.as_ref())?;
    }
    writeln!(page, "\n`*`: it varies, by the way to stop or by the repetition; the worst is shown. `·`: see below why there is none.\n")?;
    page.push_str("## Each target\n");
    page.push_str(&details);
    Ok(page)
}

fn line(page: &mut String, recipe: &Recipe, kept: Option<&Kept>) -> anyhow::Result<()> {
    write!(page, "| [{} {}](#{}) | {} |", recipe.name, recipe.version, recipe.id, recipe.language)?;
    for (scenario, _) in COLUMNS {
        match kept.and_then(|kept| kept.worst(scenario)) {
            Some((worst, varies)) => {
                let is_bad = matches!(worst, "lets-go" | "goes-on" | "lies" | "breaks");
                let (bold, mark) = (if is_bad { "**" } else { "" }, if varies { "\\*" } else { "" });
                write!(page, " {bold}{}{bold}{mark} |", worst.replace('-', " "))?;
            }
            None => write!(page, " · |")?,
        }
    }
    writeln!(page)?;
    Ok(())
}

fn detail(page: &mut String, recipe: &Recipe, kept: Option<&Kept>) -> anyhow::Result<()> {
    writeln!(page, "\n<a id=\"{}\"></a>\n\n### {}\n", recipe.id, recipe.name)?;
    let Some(kept) = kept else {
        let why = recipe.skip.as_deref().unwrap_or("it was not driven yet");
        writeln!(page, "Not driven: {why}.")?;
        return Ok(());
    };
    let old = if kept.version == recipe.version { String::new() } else { format!("; its recipe is of {} now", recipe.version) };
    writeln!(page, "Version {}, on {}{old}. Again: `cargo xtask stop-table {}`. Its ways to stop:", kept.version, kept.date, recipe.id)?;
    recipe.stop.iter().try_for_each(|(way, at)| writeln!(page, "- `{way}`: <{at}>"))?;
    let (judged, not): (Vec<&KeptRow>, Vec<&KeptRow>) = kept.rows.iter().partition(|row| !row.verdicts.is_empty());
    writeln!(page, "\n| scenario | way | verdict | because |\n|---|---|---|---|")?;
    for row in judged {
        let counted = row.verdicts.iter().map(|(word, times)| format!("{} ({times})", word.replace('-', " ")));
        let counted: Vec<String> = counted.collect();
        writeln!(page, "| {} | `{}` | {} | {} |", row.scenario, row.way, counted.join(", "), cell(&row.because))?;
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
