//! Rules about documentation: what a public item must say of itself.

use crate::source::File;

use super::Fault;

pub(super) fn says_what_a_drop_loses(file: &File) -> Vec<Fault> {
    let reported = |above: &str| above.contains("# Cancel safety");
    items(file, "pub async fn", reported, "say under `# Cancel safety` what is lost if it is dropped")
}

pub(super) fn decides_about_its_enums(file: &File) -> Vec<Fault> {
    let decided =
        |above: &str| ["non_exhaustive", "Exhaustive", "doc(hidden)"].iter().any(|word| above.contains(word));
    items(file, "pub enum", decided, "make it #[non_exhaustive], or say in its docs why it is `Exhaustive:`")
}

/// The items that open with these words, and whose documentation and attributes do not please.
fn items(file: &File, opens: &str, pleases: fn(&str) -> bool, fix: &str) -> Vec<Fault> {
    if !file.is_rust() || file.is_test() || file.path.starts_with("xtask/") {
        return Vec::new();
    }
    let mut above = String::new();
    let mut faults = Vec::new();
    for (number, line) in file.product() {
        let line = line.trim_start();
        if line.starts_with("///") || line.starts_with("#[") {
            above.push_str(line);
            continue;
        }
        if line.starts_with(opens) && !pleases(&above) {
            faults.push(Fault::new(number, fix));
        }
        above.clear();
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    #[test]
    fn a_public_async_fn_says_what_a_drop_loses() {
        let said = "/// # Cancel safety\n/// Nothing.\n#[must_use]\npub async fn a() {}\n";
        assert!(broken(says_what_a_drop_loses, "a.rs", said).is_empty());
        assert_eq!(broken(says_what_a_drop_loses, "a.rs", "/// Waits.\npub async fn a() {}\n"), [2]);
        let other = format!("{said}pub async fn b() {{}}\n");
        assert_eq!(
            broken(says_what_a_drop_loses, "a.rs", &other),
            [5],
            "its neighbour's docs are not its own"
        );
    }

    #[test]
    fn a_public_enum_decides() {
        assert_eq!(broken(decides_about_its_enums, "a.rs", "/// Colours.\npub enum A {}\n"), [2]);
        assert!(broken(decides_about_its_enums, "a.rs", "/// Exhaustive: all.\npub enum A {}\n").is_empty());
        assert!(broken(decides_about_its_enums, "a.rs", "#[non_exhaustive]\npub enum A {}\n").is_empty());
    }
}
