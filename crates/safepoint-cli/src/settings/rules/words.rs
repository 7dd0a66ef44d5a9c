//! The words of a command, matched one by one, where a rule allows it.
//!
//! **Invariants**: what a `*` stands for consists of letters that no shell gives a meaning, at no place of a command: no
//! quotes, no expansion, no operator, no variable set for the command. What cannot be judged so fits nothing. A `*` inside a word never reaches into
//! another word, and no word that a `*` took part in goes up in a directory.

use super::pattern::{Pattern, climbs};

/// Besides letters and digits: these mean themselves, wherever they stand in a command.
const INERT: &str = "_-./:=@%+,";
/// Around what means itself.
const QUOTES: [char; 2] = ['\'', '"'];

/// Whether the letter means itself in every shell, wherever it stands. Of letters beyond ASCII it depends on the language
/// settings what divides words.
pub(crate) fn is_inert(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || INERT.contains(letter)
}

/// Whether the command is as the pattern says, word for word.
pub(crate) fn fit(pattern: &str, command: &str) -> bool {
    let (wanted, given): (Vec<&str>, Vec<&str>) =
        (pattern.split(' ').collect(), command.split(' ').collect());
    let sets = settings(&given);
    let mut at = vec![false; given.len() + 1];
    at[0] = true;
    for word in wanted {
        let mut next = vec![false; given.len() + 1];
        let one = Pattern::of(word);
        for (place, found) in given.iter().enumerate() {
            next[place + 1] = match word {
                // One word or more.
                word if word.contains('*') && sets[place] => false,
                "*" => (at[place] || next[place]) && is_plain(found),
                word if word.contains('*') => at[place] && is_within(&one, word, found),
                word => at[place] && word == *found,
            };
        }
        at = next;
    }
    at[given.len()]
}

/// Whether the stars of such a pattern can be judged.
pub(crate) fn check(pattern: &str) -> Result<(), String> {
    let judged = |word: &&str| *word == "*" || !word.contains('*') || can_be_judged(word);
    match pattern.split(' ').find(|word| !judged(word)) {
        None => Ok(()),
        Some(word) => Err(format!(
            "what the `*` of `{word}` stands for cannot be judged beside the other letters of that word, so this rule \
             would never allow anything; write `**` if it may be any text, another command too"
        )),
    }
}

/// Beside a star stands nothing that could give a meaning to what it stands for.
fn can_be_judged(word: &str) -> bool {
    word.chars().all(|letter| letter == '*' || is_inert(letter) || QUOTES.contains(&letter))
}

/// Whether the word is as a word with stars in it says. A star that begins it does not lead to the root directory.
fn is_within(pattern: &Pattern, wanted: &str, found: &str) -> bool {
    let from_root = wanted.starts_with('*') && found.starts_with('/');
    can_be_judged(wanted)
        && !from_root
        && pattern.is_like(found, is_inert)
        && climbs(&found.replace(QUOTES, "")) <= climbs(&wanted.replace(QUOTES, ""))
}

/// Which words set a variable for the command behind them: `LD_PRELOAD=x`. A command begins with the line, and behind
/// whatever ends another one.
fn settings(words: &[&str]) -> Vec<bool> {
    let is_setting = |word: &str| {
        let of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.chars().all(of_name))
    };
    let mut begins = true;
    let sets = words.iter().map(|word| {
        let sets = begins && is_setting(word);
        begins = sets || word.ends_with(['&', '|', ';', '(', '{', '!']);
        sets
    });
    sets.collect()
}

/// A word that means itself and goes nowhere up.
fn is_plain(word: &str) -> bool {
    word.chars().all(is_inert) && climbs(word) == 0
}
