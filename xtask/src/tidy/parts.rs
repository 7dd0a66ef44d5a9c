//! Rules about the structs that drive: few fields each, since a struct that is everything owns nothing.

use syn::Item;

use crate::source::File;

use super::Fault;

/// Fields of a driver, and of each of its parts.
const FIELDS: usize = 12;

/// Where the drivers and their parts lie.
const DRIVERS: [&str; 2] = ["crates/safepoint/src/run/driver", "crates/safepoint/src/session/driver"];

pub(super) fn has_few_fields(file: &File) -> Vec<Fault> {
    if !file.lies_in(&DRIVERS) || !file.is_rust() || file.is_test() {
        return Vec::new();
    }
    let Ok(parsed) = syn::parse_file(&file.text) else { return Vec::new() };
    let wide = parsed.items.iter().filter_map(|item| match item {
        Item::Struct(item) if item.fields.len() > FIELDS => Some(&item.ident),
        _ => None,
    });
    let fault = |name: &syn::Ident| {
        let line = file.code().find(|(_, line)| line.contains(&format!("struct {name}")));
        let what =
            format!("`{name}` has more than {FIELDS} fields: give those of one concern a part of their own");
        Fault::new(line.map_or(1, |(number, _)| number), what)
    };
    wide.map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::broken;

    #[test]
    fn a_driver_that_is_everything_is_found() {
        let wide = |fields: usize| {
            let fields: String = (0..fields).map(|number| format!("    a{number}: u8,\n")).collect();
            format!("//! x\n\nstruct Driver {{\n{fields}}}\n")
        };
        let driver = "crates/safepoint/src/run/driver.rs";
        assert_eq!(broken(has_few_fields, driver, &wide(FIELDS + 1)), [3]);
        assert!(broken(has_few_fields, driver, &wide(FIELDS)).is_empty());
        assert!(broken(has_few_fields, "crates/safepoint/src/value/a.rs", &wide(FIELDS + 1)).is_empty());
    }
}
