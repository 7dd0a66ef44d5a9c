//! Doors: how a target is started, asked something, stopped, and how its caller gets control back.

use std::{fmt, io, path::PathBuf, str::FromStr};

use futures_util::future::BoxFuture;
use safepoint_testkit::script::Call;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{
    claims::Said,
    scenario::{Scenario, StopMoment},
    stage::{StageError, TrialStage},
};

mod a2a;
mod acp;
mod adapter;
mod endpoint;
mod http;
mod lines;
mod mcp;
mod process;
mod program;
mod request_file;
mod responses;
mod server;
mod terminal;
mod turn;

pub use request_file::RequestFile;
pub use terminal::ScreenTexts;

/// A target and the door to it, as it is named on the command line: `program:CMD`, `terminal:CMD`, `adapter:CMD`, `acp:CMD`, `a2a:CMD`,
/// `responses:CMD`, `http:CMD` or `mcp:CMD`.
///
/// ```
/// use safepoint_stop_test::Target;
/// let target: Target = "program:my-agent --print".parse().unwrap();
/// assert_eq!(target.to_string(), "program:my-agent --print");
/// assert!("my-agent".parse::<Target>().is_err(), "which door?");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    door: DoorKind,
    command: String,
    setting: Setting,
}

/// What a target finds around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Its requests offer no tools.
    pub(crate) is_toolless: bool,
    /// Where its trials have their folders; none: where this machine has such.
    pub(crate) place: Option<PathBuf>,
    /// Why its next message says nothing of a stop: it fails without one, too.
    pub(crate) fails_anyway: Option<String>,
    /// Why what it does once its turn is over says nothing of a stop: it does so without one, too.
    pub(crate) acts_anyway: Option<String>,
    /// A folder whose files its home has.
    pub(crate) home: Option<PathBuf>,
    /// Variables of its environment.
    pub(crate) variables: Vec<(String, String)>,
    /// Headers of each request to it.
    pub(crate) headers: Vec<(String, String)>,
    /// How an endpoint is asked that has no protocol of its own.
    pub(crate) request: Option<RequestFile>,
    /// How its screen is read.
    pub(crate) screen: ScreenTexts,
}

/// The doors that there are. Exhaustive: each is a way to start, to stop and to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DoorKind {
    Program,
    Terminal,
    Adapter,
    Acp,
    A2a,
    Responses,
    Http,
    Mcp,
}

const DOORS: [(&str, DoorKind); 8] = [
    ("program", DoorKind::Program),
    ("terminal", DoorKind::Terminal),
    ("adapter", DoorKind::Adapter),
    ("acp", DoorKind::Acp),
    ("a2a", DoorKind::A2a),
    ("responses", DoorKind::Responses),
    ("http", DoorKind::Http),
    ("mcp", DoorKind::Mcp),
];

const FORMS: &str = "a target is `program:CMD`, `terminal:CMD`, `adapter:CMD`, `acp:CMD`, `a2a:CMD`, `responses:CMD`, `http:CMD` or `mcp:CMD`";

impl Setting {
    /// An empty folder for a trial.
    pub(crate) fn folder(&self) -> io::Result<TempDir> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("stop-test-");
        let folder = match &self.place {
            Some(place) => folder.tempdir_in(place),
            None => folder.tempdir(),
        }?;
        // It stands in the commands that a target is asked to run.
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
        if !folder.path().as_os_str().as_encoded_bytes().iter().all(is_plain) {
            let why = format!(
                "{} has letters that a shell reads; set TMPDIR to a plain path",
                folder.path().display()
            );
            return Err(io::Error::other(why));
        }
        Ok(folder)
    }
}

/// What a caller was told when it got control back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) at: Instant,
    pub(crate) says: Said,
    /// What was named as still under way: any text with its number or its name.
    pub(crate) named: Vec<String>,
}

impl Told {
    pub(crate) fn now(says: Said) -> Self {
        Self { at: Instant::now(), says, named: Vec::new() }
    }
}

/// What a caller calls itself of a target that asks no model.
pub(crate) trait CalledTools: Send {
    /// Its tools, as a request to a model has them.
    fn offered(&self) -> &Value;

    /// Makes these calls at once; the other one is the next message.
    fn call<'a>(&'a mut self, calls: &'a [Call], later: Option<Call>) -> BoxFuture<'a, ()>;
}

/// A target that was started.
pub(crate) trait Started: Send {
    /// Its tools, if it asks no model.
    fn tools(&mut self) -> Option<&mut dyn CalledTools> {
        None
    }

    /// Asks it to stop in this way.
    fn stop<'a>(&'a mut self, way: &'a str) -> BoxFuture<'a, Result<(), StageError>>;

    /// Waits until the caller has control back.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    fn told(&mut self) -> BoxFuture<'_, Told>;

    /// Waits until it asks whether something may be done.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    fn questioned(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    /// Sends the next message, and says whether it is answered; or why there is none.
    fn next(&mut self) -> BoxFuture<'_, Result<bool, String>>;

    /// How it ended without being asked to, if it did.
    fn crash(&mut self) -> Option<String>;

    /// The last of what it wrote for a reader.
    fn words(&self) -> String;
}

/// What is asked first.
const FIRST: &str = "do what you are asked to do";
/// What is asked after a stop.
pub(crate) const NEXT: &str = "and what is so then?";

impl Target {
    /// The same target; it offers its model no tools at all.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.setting.is_toolless = true;
        self
    }

    /// The same target; its trials have their folders in this one.
    #[must_use]
    pub fn within(mut self, place: PathBuf) -> Self {
        self.setting.place = Some(place);
        self
    }

    /// The same target; its home has the files of this folder. `{NAME}` in a file is replaced by that variable of its environment.
    #[must_use]
    pub fn at_home(mut self, folder: PathBuf) -> Self {
        self.setting.home = Some(folder);
        self
    }

    /// The same target, with this variable in its environment; `{NAME}` in its value is replaced by that variable of the test's own.
    #[must_use]
    pub fn with_variable(mut self, name: String, value: String) -> Self {
        self.setting.variables.push((name, value));
        self
    }

    /// The same target; its next message says nothing of a stop, for this reason.
    #[must_use]
    pub fn without_next(mut self, why: String) -> Self {
        self.setting.fails_anyway = Some(why);
        self
    }

    /// The same target; what it does once its turn is over says nothing of a stop, for this reason.
    #[must_use]
    pub fn without_after_end(mut self, why: String) -> Self {
        self.setting.acts_anyway = Some(why);
        self
    }

    /// Why its next message says nothing of a stop, if it does not.
    pub(crate) fn fails_anyway(&self) -> Option<&str> {
        self.setting.fails_anyway.as_deref()
    }

    /// The same target; each request to it has this header.
    #[must_use]
    pub fn with_header(mut self, name: String, value: String) -> Self {
        self.setting.headers.push((name, value));
        self
    }

    /// The same target; an endpoint is asked as this file says.
    #[must_use]
    pub fn asked_by(mut self, file: RequestFile) -> Self {
        self.setting.request = Some(file);
        self
    }

    /// The same target; its screen shows these texts.
    #[must_use]
    pub fn with_screen(mut self, texts: ScreenTexts) -> Self {
        self.setting.screen = texts;
        self
    }

    /// The ways to stop it that its door offers.
    ///
    /// # Errors
    /// Why the target cannot be started, which is tried: a library's adapter says how it is stopped.
    ///
    /// # Cancel safety
    /// What was started is ended.
    pub async fn ways(&self) -> Result<Vec<String>, StageError> {
        let owned = |ways: &[&str]| ways.iter().map(|way| (*way).to_owned()).collect();
        let stage = self.stage().await?;
        match self.door {
            DoorKind::Adapter => return Ok(adapter::Adapter::open(&self.command, &stage).await?.ways()),
            DoorKind::Mcp => return Ok(mcp::Mcp::start((&self.command, ""), &stage).await?.ways()),
            _ => {}
        }
        drop(self.start(&stage, (StopMoment::HeadersAwaited, "")).await?);
        Ok(match self.door {
            DoorKind::Program | DoorKind::Adapter | DoorKind::Mcp => program::ways(),
            DoorKind::Terminal => owned(&terminal::WAYS),
            DoorKind::Acp => owned(&acp::WAYS),
            DoorKind::A2a => owned(&a2a::WAYS),
            DoorKind::Responses => owned(&responses::WAYS),
            DoorKind::Http => endpoint::ways(self.setting.request.as_ref()),
        })
    }

    /// Why its door cannot bring this scenario about, if it cannot.
    pub(crate) fn lacks(&self, scenario: &Scenario) -> Option<&str> {
        match (self.door, scenario.moment) {
            (_, StopMoment::AfterEnd) if scenario.stops > 0 && self.setting.acts_anyway.is_some() => {
                self.setting.acts_anyway.as_deref()
            }
            // To stop a call twice needs no stream.
            (DoorKind::Mcp, moment) if moment.needs_a_model() && scenario.stops < 2 => {
                Some("a server of tools asks no model")
            }
            (DoorKind::Acp, StopMoment::Question) => None,
            (DoorKind::Terminal, StopMoment::Question) => self
                .setting
                .screen
                .asks
                .is_none()
                .then_some("it is not known how its screen asks; say `--asks`"),
            (DoorKind::Terminal, StopMoment::AfterEnd) if !self.setting.screen.say_when_free() => {
                Some("it is not known how its screen shows that its turn is over; say `--free` or `--busy`")
            }
            (_, StopMoment::Question) => Some("its door shows no question to whoever started it"),
            (DoorKind::Program, StopMoment::AfterEnd) => {
                Some("a program of one prompt is gone when its turn is over")
            }
            _ => None,
        }
    }

    /// Whether what it says is free text, in which the word for a model stands for many things.
    pub(crate) fn writes_prose(&self) -> bool {
        matches!(self.door, DoorKind::Program | DoorKind::Terminal)
    }

    pub(crate) async fn stage(&self) -> Result<TrialStage, StageError> {
        TrialStage::build(&self.setting).await
    }

    /// Starts it on a stage, with something to do that is stopped in this way.
    pub(crate) async fn start(
        &self,
        stage: &TrialStage,
        (moment, way): (StopMoment, &str),
    ) -> Result<Box<dyn Started>, StageError> {
        let (line, Setting { headers, request, .. }) = (&*self.command, &self.setting);
        Ok(match self.door {
            DoorKind::Program => Box::new(program::Program::start(line, stage)?),
            DoorKind::Terminal => {
                Box::new(terminal::Terminal::start(line, stage, &self.setting.screen, moment).await?)
            }
            DoorKind::Adapter => Box::new(adapter::Adapter::start(line, stage).await?),
            DoorKind::Acp => Box::new(acp::Acp::start(line, stage, moment == StopMoment::Question).await?),
            DoorKind::A2a => Box::new(a2a::A2a::start(line, stage, headers).await?),
            DoorKind::Responses => Box::new(responses::Responses::start((line, way), stage, headers).await?),
            DoorKind::Mcp => Box::new(mcp::Mcp::start((line, way), stage).await?),
            DoorKind::Http => {
                Box::new(endpoint::Endpoint::start(line, stage, (request.as_ref(), headers)).await?)
            }
        })
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, command) =
            text.split_once(':').ok_or_else(|| format!("`{text}` names no door: {FORMS}"))?;
        let door = DOORS.into_iter().find(|(known, _)| *known == name);
        let (_, door) = door.ok_or_else(|| format!("there is no door `{name}`: {FORMS}"))?;
        if command.trim().is_empty() {
            return Err(format!("`{text}` names no command: {FORMS}"));
        }
        Ok(Self { door, command: command.to_owned(), setting: Setting::default() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = DOORS.into_iter().find(|(_, door)| *door == self.door).map_or("", |(name, _)| name);
        write!(f, "{name}:{}", self.command)
    }
}

fn no_such_way(way: &str) -> StageError {
    StageError::NotExpressed(format!("its door has no way `{way}`"))
}

/// What a target wrote for a reader, as the end of a sentence.
pub(crate) fn wrote(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("; it wrote: {words}") }
}
