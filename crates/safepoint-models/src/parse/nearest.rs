//! The known name that is nearest to a wrong one.

/// The nearest of these names, if it is near enough to have been meant.
pub(super) fn to<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const LONGEST: usize = 32;
    if wrong.len() > LONGEST {
        return None;
    }
    let wrong = wrong.to_lowercase();
    let apart = |name: &str| {
        let is_part = wrong.len() >= 3 && (name.starts_with(&wrong) || wrong.starts_with(name));
        if is_part { 1 } else { distance(&wrong, name) }
    };
    let (apart, name) = names.map(|name| (apart(name), name)).min_by_key(|(apart, _)| *apart)?;
    (apart <= 1 + name.len() / 4).then_some(name)
}

/// How many letters must be added, left out or changed (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = place + 1;
        for (at, known) in other.iter().enumerate() {
            let changed = before + usize::from(*known != letter);
            before = row[at + 1];
            row[at + 1] = changed.min(before + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_meant_is_found() {
        let names = ["openai", "anthropic", "xai", "azure", "lmstudio", "groq"];
        for (wrong, meant) in [
            ("antropic", Some("anthropic")),
            ("OpenAI", Some("openai")),
            ("azure-openai", Some("azure")),
            ("lm-studio", Some("lmstudio")),
            ("groqq", Some("groq")),
            ("nonsense", None),
            ("", None),
        ] {
            assert_eq!(to(wrong, names.into_iter()), meant, "{wrong}");
        }
    }
}
