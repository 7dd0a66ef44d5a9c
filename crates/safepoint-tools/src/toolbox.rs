//! The tools by name, for a program that chooses among them in a list.

use std::{fmt, path::Path, sync::Arc};

use safepoint::Tool;
use safepoint_sandbox::Confinement;

use crate::{
    Root, RootError, SecretFiles, confined_shell, edit_file, http_get, list_dir, process::Processes,
    read_file, search, shell, shell_outside, sleep, write_file,
};

/// All tools of this crate, in a fixed order.
#[derive(Clone)]
#[must_use = "its tools are given to an agent"]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
}

/// All tools of this crate on `root`, with commands marked by a name of their own.
///
/// # Errors
/// If the directory cannot be opened.
pub fn toolbox(root: impl AsRef<Path>) -> Result<Toolbox, RootError> {
    let mark = format!("tools_{}", uuid::Uuid::new_v4().simple());
    Ok(Toolbox::new(Root::open(root)?, Processes::new(mark)))
}

impl Toolbox {
    /// The tools on `root`, whose commands run through `processes`.
    pub fn new(root: Root, processes: Processes) -> Self {
        Self::guarding(root, processes, SecretFiles::default())
    }

    /// The same, where other files than the usual ones commonly hold secrets.
    pub fn guarding(root: Root, processes: Processes, secrets: SecretFiles) -> Self {
        let root = Arc::new(root);
        let shells: Vec<Arc<dyn Tool>> = vec![Arc::new(shell(Arc::clone(&root), processes))];
        Self::with(shells, root, secrets)
    }

    /// The same, where commands are confined, and one that needs more asks for it: `shell_outside` is behind `shell`.
    pub fn confining(
        root: Root,
        processes: Processes,
        secrets: SecretFiles,
        confinement: Confinement,
    ) -> Self {
        let root = Arc::new(root);
        let shells: Vec<Arc<dyn Tool>> = vec![
            Arc::new(confined_shell(Arc::clone(&root), processes.clone(), confinement.clone())),
            Arc::new(shell_outside(Arc::clone(&root), processes, confinement)),
        ];
        Self::with(shells, root, secrets)
    }

    fn with(mut tools: Vec<Arc<dyn Tool>>, root: Arc<Root>, secrets: SecretFiles) -> Self {
        let secrets = Arc::new(secrets);
        let others: [Arc<dyn Tool>; 7] = [
            Arc::new(read_file(Arc::clone(&root), Arc::clone(&secrets))),
            Arc::new(write_file(Arc::clone(&root))),
            Arc::new(edit_file(Arc::clone(&root))),
            Arc::new(list_dir(Arc::clone(&root))),
            Arc::new(search(root, secrets)),
            Arc::new(http_get()),
            Arc::new(sleep()),
        ];
        tools.extend(others);
        Self { tools }
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.spec().name.as_str())
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    /// Those in a list of names with commas between, in the list's order, each once. `all` is all, `none` is none.
    ///
    /// # Errors
    /// [`UnknownTool`] for the first name that is none of theirs.
    pub fn select(&self, list: &str) -> Result<Vec<Arc<dyn Tool>>, UnknownTool> {
        match list.trim() {
            "all" => return Ok(self.all()),
            "none" | "" => return Ok(Vec::new()),
            _ => {}
        }
        let mut chosen: Vec<Arc<dyn Tool>> = Vec::new();
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let tool =
                self.tools.iter().find(|tool| tool.spec().name == name).ok_or_else(|| self.unknown(name))?;
            if !chosen.iter().any(|other| other.spec().name == name) {
                chosen.push(Arc::clone(tool));
            }
        }
        Ok(chosen)
    }

    fn unknown(&self, name: &str) -> UnknownTool {
        UnknownTool { name: name.to_owned(), known: self.names().map(str::to_owned).collect() }
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A name that is no tool's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool {name:?}; there are {}, and `all` and `none`", known.join(", "))]
pub struct UnknownTool {
    name: String,
    known: Vec<String>,
}

#[cfg(test)]
mod tests {
    use safepoint::tool::EffectClass;

    use super::*;

    fn box_of_all() -> (tempfile::TempDir, Toolbox) {
        let place = tempfile::tempdir().unwrap();
        let toolbox = toolbox(place.path()).unwrap();
        (place, toolbox)
    }

    fn names(tools: &[Arc<dyn Tool>]) -> Vec<&str> {
        tools.iter().map(|tool| tool.spec().name.as_str()).collect()
    }

    #[test]
    fn a_list_selects_in_its_own_order_and_each_once() {
        let (_place, toolbox) = box_of_all();
        let chosen = toolbox.select(" sleep, shell ,sleep,").unwrap();
        assert_eq!(names(&chosen), ["sleep", "shell"]);
        assert_eq!(toolbox.select("all").unwrap().len(), 8);
        assert!(toolbox.select("none").unwrap().is_empty());
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        let (_place, toolbox) = box_of_all();
        let error = toolbox.select("shell,bash").err().expect("there is no such tool");
        assert_eq!(
            error.to_string(),
            "there is no tool \"bash\"; there are shell, read_file, write_file, edit_file, list_dir, search, http_get, \
             sleep, and `all` and `none`"
        );
    }

    /// S4.4: every tool states its effect, and honestly.
    #[test]
    fn effects_are_stated() {
        let (_place, toolbox) = box_of_all();
        for tool in toolbox.all() {
            let expected = match tool.spec().name.as_str() {
                "shell" | "edit_file" => EffectClass::Unsafe,
                "write_file" => EffectClass::Idempotent,
                _ => EffectClass::ReadOnly,
            };
            assert_eq!(tool.spec().effect, expected, "{}", tool.spec().name);
        }
    }

    #[test]
    fn a_root_that_is_not_there_is_a_clear_error() {
        let error = toolbox("/no/such/place").expect_err("it is not there");
        assert!(
            error.to_string().starts_with("cannot open the root directory \"/no/such/place\""),
            "{error}"
        );
    }
}
