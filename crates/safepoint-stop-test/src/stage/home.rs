//! The home of a target: nothing of whoever runs the test, and what the target's setting puts there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::door::Setting;

/// A home that was made, and the environment that names it.
pub(super) struct Home {
    pub(super) variables: Vec<(String, String)>,
}

impl Home {
    /// Makes the home at this place.
    ///
    /// # Errors
    /// What cannot be read, or cannot be written.
    pub(super) fn build(place: &Path, setting: &Setting, own: Vec<(String, String)>) -> io::Result<Self> {
        let added = setting.variables.iter().map(|(name, value)| (name.clone(), filled(value, &own)));
        let added: Vec<_> = added.collect();
        let is_added = |name: &String| added.iter().any(|(other, _)| other == name);
        let mut variables: Vec<(String, String)> =
            own.into_iter().filter(|(name, _)| !is_added(name)).collect();
        variables.extend(added);
        fs::create_dir(place)?;
        if let Some(from) = &setting.home {
            copy(from, place, &variables)?;
        }
        Ok(Self { variables })
    }
}

fn copy(from: &Path, to: &Path, variables: &[(String, String)]) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let (from, to): (PathBuf, PathBuf) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if from.is_dir() {
            fs::create_dir(&to)?;
            copy(&from, &to, variables)?;
        } else {
            fs::write(&to, filled(&fs::read_to_string(&from)?, variables))?;
        }
    }
    Ok(())
}

/// The text, with each `{NAME}` of a variable replaced by its value; other braces stay.
fn filled(text: &str, variables: &[(String, String)]) -> String {
    let fill = |text: String, (name, value): &(String, String)| text.replace(&format!("{{{name}}}"), value);
    variables.iter().fold(text.to_owned(), fill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_in_braces_is_replaced_and_other_braces_stay() {
        let variables = [("URL".to_owned(), "http://here".to_owned())];
        assert_eq!(
            filled(r#"{"a": {"url": "{URL}/v1"}, "b": {}}"#, &variables),
            r#"{"a": {"url": "http://here/v1"}, "b": {}}"#
        );
        assert_eq!(filled("{OTHER}", &variables), "{OTHER}");
    }

    #[test]
    fn a_home_has_the_files_of_its_setting_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let from = place.path().join("from");
        fs::create_dir_all(from.join(".config")).unwrap();
        fs::write(from.join(".config/agent.json"), r#"{"url": "{URL}"}"#).unwrap();
        let setting = Setting {
            home: Some(from),
            variables: vec![("MORE".into(), "{URL}/more".into())],
            ..Setting::default()
        };
        let own = vec![("URL".to_owned(), "http://here".to_owned())];
        let home = Home::build(&place.path().join("home"), &setting, own).unwrap();
        assert_eq!(home.variables[1], ("MORE".to_owned(), "http://here/more".to_owned()));
        let written = fs::read_to_string(place.path().join("home/.config/agent.json")).unwrap();
        assert_eq!(written, r#"{"url": "http://here"}"#);
    }
}
