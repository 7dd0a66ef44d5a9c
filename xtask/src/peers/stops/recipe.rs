//! The recipe of a target: how it is had, how it is started, and how its documentation says that it is stopped.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// `target.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    /// Its folder.
    #[serde(skip)]
    pub(super) id: String,
    /// As it calls itself.
    pub(super) name: String,
    /// Its language; `program` for one that people run.
    pub(super) language: String,
    pub(super) door: String,
    pub(super) version: String,
    /// Why it is not driven.
    pub(super) skip: Option<String>,
    #[serde(default)]
    pub(super) install: Install,
    #[serde(default)]
    run: Run,
    /// More arguments of `stop-test`.
    #[serde(default)]
    pub(super) args: Vec<String>,
    /// What a reader of its rows must know.
    pub(super) note: Option<String>,
    /// The ways that are meant to wait for a boundary: their rows are no verdict on a stop.
    #[serde(default)]
    pub(super) graceful: Vec<String>,
    /// The ways that CI tries, of a target of ours; all, if none is named.
    #[serde(default)]
    pub(super) ci: Vec<String>,
    /// Each way to stop, with the page that says so.
    #[serde(default)]
    pub(super) stop: BTreeMap<String, String>,
}

/// Packages by name, with their versions; or a project.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Install {
    pub(super) python: Vec<String>,
    pub(super) node: Vec<String>,
    pub(super) project: Option<Project>,
}

/// What is built. Exhaustive: these are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Project {
    /// By `go`, from what lies beside the recipe.
    Go,
    /// By `mvn`, from what lies beside the recipe.
    Maven,
    /// By `cargo`, from what lies beside the recipe.
    Cargo,
    /// This project's own program.
    Own,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Run {
    command: String,
    env: BTreeMap<String, String>,
    /// The variable that holds its key, which a program that starts it must hand on.
    key: Option<String>,
}

impl Recipe {
    /// All recipes, by name of their folders.
    pub(super) fn all(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let mut recipes = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
            let path = entry?.path().join("target.toml");
            if !path.exists() {
                continue;
            }
            let text =
                fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            let recipe: Self =
                toml::from_str(&text).with_context(|| format!("{} is no recipe", path.display()))?;
            let id = path.parent().and_then(Path::file_name).unwrap_or_default();
            recipes.push(Self { id: id.to_string_lossy().into_owned(), ..recipe }.checked()?);
        }
        recipes
            .sort_by(|one, other| (one.language.clone(), &one.id).cmp(&(other.language.clone(), &other.id)));
        Ok(recipes)
    }

    /// One that is driven says how it is started, and each way to stop it has its page.
    fn checked(self) -> anyhow::Result<Self> {
        if self.skip.is_none() && (self.run.command.is_empty() || self.stop.is_empty()) {
            bail!(
                "{}: a recipe has `run.command`, and in `stop` each way with its page; or `skip`, with the reason",
                self.id
            );
        }
        if let Some((way, page)) = self.stop.iter().find(|(_, page)| !page.starts_with("https://")) {
            bail!("{}: the way `{way}` names no page, but `{page}`", self.id);
        }
        Ok(self)
    }

    /// Whether it is this project itself.
    pub(super) fn is_ours(&self) -> bool {
        self.install.project == Some(Project::Own)
    }

    /// As `stop-test` is given it.
    pub(super) fn target(&self, places: &Places<'_>) -> String {
        format!("{}:{}", self.door, places.fill(&self.run.command))
    }

    /// Whether our own program can drive it.
    pub(super) fn is_driven_by_ours(&self) -> bool {
        self.door == "acp" && !self.is_ours()
    }

    /// Our own program that drives it, as `stop-test` is given that. It knows which server of this machine is the model.
    pub(super) fn by_ours(&self, places: &Places<'_>) -> String {
        let key = self.run.key.as_deref().unwrap_or("OPENAI_API_KEY");
        let command = format!(
            "program:{{own}} run --approve auto --backend \"acp:{}\" --backend-key-env {key} \
             --backend-calls \"${{GOOGLE_GEMINI_BASE_URL##*:}}\"",
            self.run.command
        );
        places.fill(&command)
    }

    /// Its environment, as `NAME=VALUE`.
    pub(super) fn variables(&self, places: &Places<'_>) -> Vec<String> {
        self.run.env.iter().map(|(name, value)| format!("{name}={}", places.fill(value))).collect()
    }
}

/// What a recipe names by a word in braces.
pub(super) struct Places<'a> {
    /// Its own folder.
    pub(super) here: &'a Path,
    /// Where it is installed.
    pub(super) cache: &'a Path,
    /// This project's own program.
    pub(super) own: &'a Path,
}

impl Places<'_> {
    fn fill(&self, text: &str) -> String {
        let fill =
            |text: String, (word, place): (&str, &Path)| text.replace(word, &place.display().to_string());
        [("{here}", self.here), ("{cache}", self.cache), ("{own}", self.own)]
            .into_iter()
            .fold(text.to_owned(), fill)
    }
}
