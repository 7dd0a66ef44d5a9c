//! `/review`: what git says is changed, for a turn that reviews it.
//!
//! **Invariants**: git runs under the guard of all commands and within a time; no program that the repository names is run for it,
//! and no secret that this program knows goes to the model.

use std::{path::PathBuf, time::Duration};

use safepoint_tools::process::{CommandSpec, Exit, OutputTarget, Processes};
use tokio::time::timeout;

use super::{desk::post, driver::Driver, later::Later};
use crate::render::chat::{asked::ReviewOf, state::Tone};

/// What a model is given of the changes: the beginning and the end of them, if there are more.
const MOST: usize = 64 << 10;
/// So long git may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Prints the changes that are meant: of a revision or a range, or those that are not committed. Hooks, other programs that show
/// a difference, and watchers of files are the repository's to name, and are not run.
const SCRIPT: &str = r#"
g() { git -c core.fsmonitor=false -c core.hooksPath=/dev/null --no-pager --no-optional-locks "$@"; }
d="--no-ext-diff --no-textconv --no-color"
case "$1" in
  '') g rev-parse --git-dir >/dev/null || exit 3
      if g rev-parse --quiet --verify HEAD >/dev/null; then g diff $d HEAD --; else g diff $d --cached --; fi
      g ls-files --others --exclude-standard | sed 's/^/new file, not in git yet: /' ;;
  -*) ;;
  *)  [ -n "$(g rev-parse --revs-only "$1" -- 2>/dev/null)" ] || exit 0
      case "$1" in *..*) g diff $d "$1" -- ;; *) g show $d "$1" -- ;; esac ;;
esac
"#;

impl Driver {
    pub(super) fn look_for_review(&self, what: String) {
        if self.crew.is_external() {
            let why = "an external agent has its own tools: ask it for a review in your words";
            return post(&self.later.0, Later::Message(Tone::Aside, why.to_owned()));
        }
        let (processes, root, later) = (self.processes.clone(), self.desk.root.clone(), self.later.0.clone());
        let secrets = self.desk.secrets.clone();
        tokio::spawn(async move {
            let news = match changes(&processes, root, &what).await {
                Ok(changes) if what.is_empty() && changes.trim().is_empty() => {
                    let none = "nothing to review: git says that nothing is changed; /review WHAT names something else";
                    Later::Message(Tone::Plain, none.to_owned())
                }
                Ok(changes) => {
                    let what = if what.is_empty() { "the uncommitted changes".to_owned() } else { what };
                    Later::Review(ReviewOf { what, changes: secrets.clean(changes).into() })
                }
                Err(why) => Later::Message(Tone::Bad, why),
            };
            post(&later, news);
        });
    }
}

/// What git says of it; empty if it is nothing that git knows.
///
/// # Errors
/// Why that is not known.
async fn changes(processes: &Processes, root: PathBuf, what: &str) -> Result<String, String> {
    let spec = CommandSpec::new("sh").args(["-c", SCRIPT, "review", what]).cwd(root);
    let spec = spec.output(OutputTarget::Capture { budget: MOST });
    let mut process = processes.spawn(spec).await.map_err(|error| format!("git did not start: {error}"))?;
    let Ok(report) = timeout(PATIENCE, process.wait()).await else {
        process.stop(Duration::ZERO).await;
        return Err(format!("git did not answer within {} s", PATIENCE.as_secs()));
    };
    let output = process.output().captured().text;
    if report.exit == Exit::Code(0) {
        return Ok(output);
    }
    let why = output.lines().last().unwrap_or_default();
    Err(format!("nothing to review: {why} (/review WHAT names something)"))
}
