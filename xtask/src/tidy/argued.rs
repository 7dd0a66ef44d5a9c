//! A rule about interleavings: each select, each lock and each ordering of an atomic has a comment that argues it.
//!
//! The rule sees that there is a comment; whether it is right, a reader sees.

use crate::source::File;

use super::Fault;

/// The orderings of atomics. `Less` and its like are another `Ordering`.
const ORDERINGS: [&str; 5] =
    ["Ordering::Relaxed", "Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel", "Ordering::SeqCst"];

/// How far above a comment may be, in lines.
const ABOVE: usize = 6;

/// How far inside a `select!` its first comment may be, in lines.
const INSIDE: usize = 3;

pub(super) fn argues_its_interleavings(file: &File) -> Vec<Fault> {
    // The models for loom are tests.
    if !file.path.contains("/src/") && !file.path.starts_with("src/")
        || file.is_test()
        || file.lies_in(&["crates/safepoint-loom/"])
    {
        return Vec::new();
    }
    let text: Vec<&str> = file.text.lines().map(str::trim).collect();
    let mut faults = Vec::new();
    for (number, code) in file.product_code() {
        let place = Place { text: &text, number };
        let code = code.trim();
        if declares_lock(code) && !place.is_documented() {
            faults.push(Fault::new(
                number,
                "say above what it guards, who holds it, and what is taken under it",
            ));
        }
        if selects(code) && !place.has_comment_above(&[]) && !place.has_comment_inside() {
            faults
                .push(Fault::new(number, "say above or inside why this order, and what a lost branch loses"));
        }
        if ORDERINGS.iter().any(|ordering| code.contains(ordering)) && !place.has_comment_above(&ORDERINGS) {
            faults.push(Fault::new(number, "say above why this ordering suffices, and what it pairs with"));
        }
    }
    faults
}

/// Whether the line declares a field, a static or a type that holds a lock. A reference is a parameter.
fn declares_lock(code: &str) -> bool {
    if !["Mutex<", "RwLock<"].iter().any(|lock| code.contains(lock)) || code.contains("&Mutex<") {
        return false;
    }
    let code = without_visibility(code);
    let is_item = ["static ", "struct ", "type "].iter().any(|opens| code.starts_with(opens));
    let name = code.split(':').next().unwrap_or_default();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_item || is_name && code.contains(": ") && code.ends_with(',')
}

fn without_visibility(code: &str) -> &str {
    let Some(rest) = code.strip_prefix("pub") else { return code };
    match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((_, rest)) => rest.trim_start(),
        None => rest.strip_prefix(' ').unwrap_or(code),
    }
}

/// Whether the line waits for several things: by the macro, or by the function of `futures`.
fn selects(code: &str) -> bool {
    let calls = |(at, _): (usize, &str)| {
        let before = &code[..at];
        !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.')) && !before.ends_with("fn ")
    };
    code.contains("select!") || code.match_indices("select(").any(calls)
}

/// A line among the lines of its file.
struct Place<'t> {
    text: &'t [&'t str],
    /// From 1.
    number: usize,
}

impl Place<'_> {
    /// Whether a comment is right above, behind attributes.
    fn is_documented(&self) -> bool {
        let mut above = self.text[..self.number - 1].iter().rev();
        above.find(|line| !line.starts_with("#[")).is_some_and(|line| line.starts_with("//"))
    }

    /// Whether a comment is near above, in the same function; or above the function, if it names one of these.
    fn has_comment_above(&self, names: &[&str]) -> bool {
        let above = &self.text[..self.number - 1];
        for (index, line) in above.iter().enumerate().rev().take(ABOVE) {
            if line.starts_with("//") {
                return true;
            }
            if line.starts_with("fn ") || line.contains(" fn ") {
                let docs = above[..index]
                    .iter()
                    .rev()
                    .take_while(|line| line.starts_with('#') || line.starts_with("//"));
                let names = |line: &&str| {
                    names.iter().filter_map(|name| name.split("::").last()).any(|name| line.contains(name))
                };
                return docs.into_iter().any(names);
            }
        }
        false
    }

    fn has_comment_inside(&self) -> bool {
        self.text[self.number..].iter().take(INSIDE).any(|line| line.starts_with("//"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    const ENGINE: &str = "crates/safepoint/src/a.rs";

    fn faults(text: &str) -> Vec<usize> {
        broken(argues_its_interleavings, ENGINE, text)
    }

    #[test]
    fn a_lock_that_nothing_argues_is_found() {
        assert_eq!(faults("struct A {\n    b: Mutex<u8>,\n    pub(super) c: Arc<RwLock<u8>>,\n}\n"), [2, 3]);
        assert_eq!(faults("static A: Mutex<u8> = Mutex::new(0);\n\npub struct B(Mutex<u8>);\n"), [1, 3]);
        let argued = "struct A {\n    /// Held for a look.\n    #[cfg(unix)]\n    b: Mutex<u8>,\n}\n";
        assert!(faults(argued).is_empty());
        assert!(faults("fn a(\n    b: &Mutex<u8>,\n) {\n    let c: Mutex<u8> = d;\n}\n").is_empty());
    }

    #[test]
    fn a_select_that_nothing_argues_is_found() {
        assert_eq!(faults("tokio::select! {\n    biased;\n    a = b => c,\n}\n"), [1]);
        assert_eq!(faults("match select(a, b).await {\n}\n"), [1]);
        assert!(faults("// a first\ntokio::select! {\n    biased;\n    a = b => c,\n}\n").is_empty());
        assert!(faults("tokio::select! {\n    biased;\n    // a first\n    a = b => c,\n}\n").is_empty());
        assert!(faults("fn select(a: u8) {}\nlet b = all.select(\"shell\");\n").is_empty());
    }

    #[test]
    fn an_ordering_that_nothing_argues_is_found() {
        let load = "    a.load(Ordering::Acquire)\n}\n";
        assert_eq!(faults(&format!("/// Whether it is.\nfn a() {{\n{load}")), [3]);
        assert!(faults(&format!("/// Acquire: pairs with the release below.\nfn a() {{\n{load}")).is_empty());
        assert!(faults(&format!("fn a() {{\n    // Pairs with the store below.\n{load}")).is_empty());
        let other = format!("fn a() {{\n    // Why.\n    b()\n}}\nfn c() {{\n{load}");
        assert_eq!(faults(&other), [6], "its neighbour's comment is not its own");
        assert!(faults("a.cmp(b) == Ordering::Less;\n").is_empty());
        assert!(broken(argues_its_interleavings, "crates/safepoint/tests/a.rs", load).is_empty());
    }
}
