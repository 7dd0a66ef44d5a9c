//! What a doc comment says: of the tool, and of its arguments.

use std::collections::BTreeMap;

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The headings under which a list names the arguments.
const ARGUMENTS: [&str; 3] = ["arguments", "args", "parameters"];

/// What a doc comment says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Docs {
    /// All before the first heading.
    pub(crate) description: String,
    /// The arguments in the list, in the order of their names.
    pub(crate) arguments: BTreeMap<String, String>,
}

impl Docs {
    pub(crate) fn of(attributes: &[Attribute]) -> Self {
        Self::read(&text(attributes))
    }

    fn read(text: &str) -> Self {
        let mut docs = Self::default();
        let mut heading = None;
        let mut last: Option<String> = None;
        for line in text.lines() {
            if let Some(title) = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()) {
                heading = Some(title.to_lowercase());
                continue;
            }
            match heading.as_deref() {
                None => docs.description.extend([line, "\n"]),
                Some(title) if ARGUMENTS.contains(&title) => {
                    if let Some((name, what)) = item(line) {
                        docs.arguments.insert(name.clone(), what);
                        last = Some(name);
                    } else if let Some(what) = last.as_ref().and_then(|name| docs.arguments.get_mut(name)) {
                        // A line that continues the item above.
                        what.extend([" ", line.trim()]);
                    }
                }
                Some(_) => {}
            }
        }
        docs.description = docs.description.trim().to_owned();
        docs.arguments.values_mut().for_each(|what| *what = what.trim().to_owned());
        docs
    }
}

/// The text of a doc comment, without the blank that follows the slashes.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let Meta::NameValue(pair) = &attribute.meta
            && let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &pair.value
        {
            let line = line.value();
            text.extend([line.strip_prefix(' ').unwrap_or(&line), "\n"]);
        }
    }
    text
}

/// An item of a list: the argument, and what is said of it.
fn item(line: &str) -> Option<(String, String)> {
    let item = line.trim_start().strip_prefix(['*', '-'])?.trim_start();
    let (name, what) = match item.strip_prefix('`') {
        Some(quoted) => quoted.split_once('`')?,
        None => item.split_at(item.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'))?),
    };
    let what = what.trim_start().trim_start_matches(['-', ':', '–', '—']).trim();
    (!name.is_empty()).then(|| (name.to_owned(), what.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.17
    #[test]
    fn the_description_ends_at_the_first_heading_and_the_list_names_the_arguments() {
        let docs = Docs::read(
            "Says the weather.\n\nOf any city.\n\n# Arguments\n* `city` - the name,\n  in English\n- days: how many\n\n# Errors\n* `none` - no",
        );
        assert_eq!(docs.description, "Says the weather.\n\nOf any city.");
        let arguments: Vec<_> = docs.arguments.iter().map(|(name, what)| (&**name, &**what)).collect();
        assert_eq!(arguments, [("city", "the name, in English"), ("days", "how many")]);
    }
}
