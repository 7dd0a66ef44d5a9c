//! A rule about links: what a page of Markdown names of the project is there, with its heading.
//!
//! What is on the web is not looked up. A label (`[r1]`) must be defined on its page, and be used there.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
};

use super::Fault;
use crate::source::{self, File};

/// The links that lead nowhere, of every page.
///
/// # Errors
/// If git cannot list the files.
pub(super) fn faults(files: &[File]) -> anyhow::Result<Vec<(String, Fault)>> {
    // A file that was deleted and not yet committed is no longer there.
    let root = source::root();
    let paths: BTreeSet<String> =
        source::paths()?.into_iter().filter(|path| root.join(path).exists()).collect();
    Ok(broken(files, &paths))
}

fn broken(files: &[File], paths: &BTreeSet<String>) -> Vec<(String, Fault)> {
    let is_page = |file: &&File| file.path.ends_with(".md");
    let pages: BTreeMap<&str, Page<'_>> =
        files.iter().filter(is_page).map(|file| (file.path.as_str(), Page::of(&file.text))).collect();
    let mut faults = Vec::new();
    for (&path, page) in &pages {
        let lost = page.links.iter().filter_map(|&(line, target)| {
            let what = lost(path, target, &pages, paths)?;
            Some(Fault::new(line, what))
        });
        faults.extend(lost.chain(page.labels()).map(|fault| (path.to_owned(), fault)));
    }
    faults
}

/// What of this link's target is not there.
fn lost(
    page: &str,
    target: &str,
    pages: &BTreeMap<&str, Page<'_>>,
    paths: &BTreeSet<String>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').map_or((target, None), |(file, it)| (file, Some(it)));
    let path = if file.is_empty() { Some(page.to_owned()) } else { beside(page, file) };
    let Some(path) = path.filter(|path| is_there(path, paths)) else {
        return Some(format!("`{file}` is not there: name it from this page's folder"));
    };
    let headings = &pages.get(path.as_str())?.headings;
    let heading = heading.filter(|heading| !headings.contains(*heading))?;
    Some(format!("{path} has no heading `#{heading}`"))
}

/// The path from the root of what a page names from its own folder; `None` outside of the project.
fn beside(page: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in Path::new(file).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Whether it is a file, or a folder of files.
fn is_there(path: &str, paths: &BTreeSet<String>) -> bool {
    let folder = format!("{path}/");
    paths.contains(path)
        || paths.range(folder.clone()..).next().is_some_and(|first| first.starts_with(&folder))
}

/// A page: where it leads, and where links to it may lead.
#[derive(Debug, Default)]
struct Page<'a> {
    /// Each target, by its line.
    links: Vec<(usize, &'a str)>,
    /// The anchors of its headings.
    headings: BTreeSet<String>,
    /// Each label that is defined, by its line.
    defined: BTreeMap<&'a str, usize>,
    /// Each label that is used, by its first line.
    used: BTreeMap<&'a str, usize>,
}

impl<'a> Page<'a> {
    fn of(text: &'a str) -> Self {
        let mut page = Self::default();
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            let opened = line.trim_start();
            if opened.starts_with("```") || opened.starts_with("~~~") {
                is_code = !is_code;
            } else if !is_code {
                page.read(index + 1, line);
            }
        }
        page
    }

    fn read(&mut self, number: usize, line: &'a str) {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if level > 0 && line[level..].starts_with(' ') {
            self.heading(&line[level..]);
        }
        if let Some((label, target)) = definition(line) {
            self.defined.insert(label, number);
            self.links.push((number, word(target)));
            return;
        }
        for (at, _) in line.match_indices(']').filter(|(at, _)| !is_quoted(line, *at)) {
            let behind = &line[at + 1..];
            if let Some(target) = behind.strip_prefix('(') {
                self.links.push((number, word(target.split(')').next().unwrap_or_default())));
            } else if let Some(label) = line[..at].rsplit('[').next().filter(|label| is_label(label)) {
                self.used.entry(label).or_insert(number);
            }
        }
    }

    /// The same heading a second time has the number 1 behind its anchor, and so on.
    fn heading(&mut self, text: &str) {
        let anchor = anchor(text);
        let free = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(free);
        self.headings.extend(names.find(|name| !self.headings.contains(name)));
    }

    /// Labels without their other end.
    fn labels(&self) -> impl Iterator<Item = Fault> {
        let undefined = self.used.iter().filter(|(label, _)| !self.defined.contains_key(*label));
        let undefined = undefined
            .map(|(label, line)| Fault::new(*line, format!("`[{label}]` is not defined on this page")));
        let unused =
            self.defined.iter().filter(|(label, _)| is_label(label) && !self.used.contains_key(*label));
        undefined.chain(
            unused.map(|(label, line)| Fault::new(*line, format!("`[{label}]` is not used: remove it"))),
        )
    }
}

/// The label and the target of `[label]: target`.
fn definition(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('[')?.split_once("]: ")
}

/// A letter and a number. Other words in brackets need not be links.
fn is_label(text: &str) -> bool {
    let mut chars = text.chars();
    let (first, rest) = (chars.next(), chars.as_str());
    first.is_some_and(|c| c.is_ascii_lowercase())
        && !rest.is_empty()
        && rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// A target without its title.
fn word(target: &str) -> &str {
    target.split_whitespace().next().unwrap_or_default()
}

/// Whether this place of the line is between backquotes.
fn is_quoted(line: &str, at: usize) -> bool {
    line[..at].matches('`').count() % 2 == 1
}

/// The anchor that web pages of repositories give to a heading.
fn anchor(heading: &str) -> String {
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let kept = heading.trim().chars().filter(is_kept).flat_map(char::to_lowercase);
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = "# A guide\n\n## What `x` is, and why\n\n## Again\n\n## Again\n";

    /// What is wrong with a page that lies beside a guide, a picture and a folder of programs.
    fn wrong(text: &str) -> Vec<(usize, String)> {
        let files = [File::of("docs/page.md", text), File::of("docs/guides/guide.md", GUIDE)];
        let paths = ["docs/page.md", "docs/guides/guide.md", "docs/pictures/one.png", "examples/hello.rs"];
        let found = broken(&files, &paths.map(str::to_owned).into());
        found.into_iter().map(|(path, fault)| (fault.line, format!("{path}: {}", fault.what))).collect()
    }

    #[test]
    fn a_link_to_what_is_there_is_no_fault() {
        let text = "# Top\n[a](guides/guide.md) ![b](pictures/one.png) [`c`](../examples) [d](#top)\n\
                    [e](guides/guide.md#what-x-is-and-why) [f](guides/guide.md#again-1 \"title\") [g](https://x.y/z#w)\n\
                    [h] is a word, `[i](gone.md)` is code, and so is\n```\n[j](gone.md) [k1]\n```\nbut [l1].\n\n[l1]: page.md\n";
        assert!(wrong(text).is_empty(), "{:?}", wrong(text));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let gone = "docs/page.md: `gone.md` is not there: name it from this page's folder".to_owned();
        assert_eq!(wrong("[a](gone.md)"), [(1, gone)]);
        assert_eq!(wrong("\n[a](guides/guide.md#again-2)")[0].0, 2);
        assert_eq!(wrong("[a](../../outside.md)").len(), 1);
        assert_eq!(wrong("[a](#no-such-heading)").len(), 1);
        assert_eq!(wrong("see\n\n[l1]: gone.md\n[l1]").len(), 1);
    }

    #[test]
    fn a_label_has_both_its_ends() {
        assert_eq!(wrong("as [l1] says").len(), 1);
        assert_eq!(wrong("[l1]: page.md\n").len(), 1);
    }
}
