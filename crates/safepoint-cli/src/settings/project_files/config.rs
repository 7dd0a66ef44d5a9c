//! The settings file of a project, and what of it is taken.

use std::path::{Path, PathBuf};

use toml::Table;

use super::{
    FileText,
    keys::{Verdict, verdicts},
    read_inside,
    trust::{self, Consent},
};
use crate::settings::config::Config;

/// Bytes of a settings file, at most.
const MOST: usize = 256 << 10;

/// The file as it was read.
pub(crate) struct ProjectConfig {
    path: PathBuf,
    digest: String,
    verdicts: Vec<(String, Verdict)>,
    pub(in crate::settings) config: Config,
    table: Table,
}

impl ProjectConfig {
    /// Reads the file of a project.
    ///
    /// # Errors
    /// Why nothing of it is taken.
    pub(crate) fn read(path: &Path, inside: &Path) -> Result<Self, String> {
        let found = read_inside(path, inside, MOST)?;
        let FileText { text, is_cut } = found.ok_or_else(|| "it is not there".to_owned())?;
        if is_cut {
            return Err(format!("it has more than {MOST} bytes"));
        }
        let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let config = Config::read(path.to_owned(), &text).map_err(|error| error.to_string())?;
        let digest = trust::digest(path, text.as_bytes());
        let consent = trust::consent(&digest);
        let verdicts = verdicts(&table, consent == Consent::Given);
        Ok(Self { path: path.to_owned(), digest, verdicts, config, table })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is written in it.
    pub(in crate::settings) fn table(&self) -> &Table {
        &self.table
    }

    /// What consent is given to.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// The keys that hold.
    pub(crate) fn taken(&self) -> Vec<String> {
        self.with(|verdict| *verdict == Verdict::Taken)
    }

    /// The keys that wait for consent.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.with(|verdict| *verdict == Verdict::NeedsConsent)
    }

    fn with(&self, fits: impl Fn(&Verdict) -> bool) -> Vec<String> {
        self.verdicts.iter().filter(|(_, verdict)| fits(verdict)).map(|(key, _)| key.clone()).collect()
    }

    /// What the person should know: what is not taken, and why.
    pub(crate) fn notes(&self) -> Vec<String> {
        let path = self.path.display();
        let waiting = self.waiting().join(", ");
        let waits = (!waiting.is_empty()).then(|| {
            format!(
                "{path}: {waiting} not taken; `safepoint config trust` takes it, after you have read the file"
            )
        });
        let refused = self.verdicts.iter().filter_map(|(key, verdict)| match verdict {
            Verdict::Refused(why) => Some(format!("{path}: {key} not taken: {why}")),
            Verdict::Taken | Verdict::NeedsConsent => None,
        });
        waits.into_iter().chain(refused).collect()
    }
}
