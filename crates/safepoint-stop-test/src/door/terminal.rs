//! A program with a screen, in a pseudo-terminal: it is typed at and stopped by keys, and its screen is read.
//!
//! When a screen is at rest decides only when a message is typed, and is no part of a verdict: control is back when a text is shown.

use std::{process::ExitStatus, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    FIRST, NEXT, Started, Told, no_such_way,
    process::{command_of_terminal, last},
    wrote,
};
use crate::{
    claims::Said,
    scenario::StopMoment,
    stage::{AFTERWARDS, StageError, TrialStage},
};

mod screen;
mod texts;

pub use texts::ScreenTexts;

use screen::Screen;
use texts::{below, new_rows};

/// How long a program may take until it takes input, and to answer the next message.
const PATIENCE: Duration = Duration::from_secs(60);
/// For how long a screen that shows no known text is unchanged when it takes input.
const REST: Duration = Duration::from_millis(500);
/// How long one that always moves is waited for.
const MOVES: Duration = Duration::from_secs(2);
/// How long a program may take to show what was typed, and then that it has taken it.
const TYPED: Duration = Duration::from_secs(2);
const TAKEN: Duration = Duration::from_secs(10);
/// What is free for this long is not just being drawn.
const DRAWN: Duration = Duration::from_millis(100);
/// What is gone from a screen for this long is not just being drawn anew, and was not only hidden by what was typed.
const DRAWING: Duration = Duration::from_millis(500);
/// How long the rest of what a program says may come after the prompt, and for how long nothing more comes then.
const SAYING: Duration = Duration::from_millis(500);
const SAID: Duration = Duration::from_millis(100);
/// How long a person reads a question: what is pressed sooner answers nothing, for some.
const READING: Duration = Duration::from_secs(1);
/// How soon a key that is held comes again.
const HELD: Duration = Duration::from_millis(30);
/// How long a person takes to press a key twice.
const TWICE: Duration = Duration::from_millis(250);

/// The keys, and the window that is closed.
pub(super) const WAYS: [&str; 5] = ["esc", "ctrl-c", "ctrl-c-twice", "ctrl-d", HANG_UP];
const HANG_UP: &str = "hang-up";

const ENTER: &str = "\r";
const ESC: &str = "\x1b";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// The signals of a terminal: to be killed by one that was sent is no crash.
const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;

/// A program that was told something.
pub(super) struct Terminal {
    screen: Screen,
    texts: ScreenTexts,
    /// What was typed last.
    message: &'static str,
    /// Whether a question is left open.
    leaves_questions: bool,
    /// How many of the questions on the screen were answered.
    allowed: usize,
    /// What the screen showed when it was first asked to stop.
    at_stop: Option<String>,
    pressed: Option<Instant>,
}

impl Terminal {
    /// Starts it, and has it take the first message.
    ///
    /// # Errors
    /// Why it takes none.
    ///
    /// # Cancel safety
    /// What was started is ended.
    pub(super) async fn start(
        line: &str,
        stage: &TrialStage,
        texts: &ScreenTexts,
        moment: StopMoment,
    ) -> Result<Self, StageError> {
        let mut terminal = Self {
            screen: Screen::open(command_of_terminal(line, stage))?,
            texts: texts.clone(),
            message: FIRST,
            leaves_questions: moment == StopMoment::Question,
            allowed: 0,
            at_stop: None,
            pressed: None,
        };
        terminal.ready().await.map_err(|why| terminal.not_started(&why))?;
        if !terminal.enter(FIRST).await {
            return Err(terminal.not_started("it ended when it was typed at"));
        }
        if !terminal.has_taken().await {
            let why = "its screen shows that it takes input, below a message that it has just taken; say `--free` with what it shows \
                       only then, or `--busy` with what it shows only while it works";
            return Err(terminal.not_started(why));
        }
        Ok(terminal)
    }

    /// Waits until it takes input.
    async fn ready(&mut self) -> Result<(), String> {
        let is_shown =
            |text: &str| self.texts.ready.as_ref().map_or(!text.is_empty(), |ready| text.contains(ready));
        let is_there = self.screen.until(PATIENCE, is_shown).await;
        let limit = if self.texts.ready.is_some() { MOVES } else { PATIENCE };
        let rests = is_there && self.screen.rests(REST, limit).await;
        if let Some((_, status)) = self.screen.ended() {
            return Err(format!("it ended before it took input: {status}"));
        }
        match &self.texts.ready {
            Some(ready) if !is_there => Err(format!("its screen does not show `{ready}`")),
            None if !rests => {
                Err("its screen does not come to rest; say `--ready` with what it shows when it takes input"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }

    fn not_started(&self, why: &str) -> StageError {
        StageError::NotStarted(format!("{why}{}", wrote(&self.words())))
    }

    /// Types a message, and Enter once the screen shows it; whether the program was there until then.
    async fn enter(&mut self, message: &'static str) -> bool {
        self.message = message;
        self.screen.press(message).await;
        // Keys that come too fast are a text that is pasted, for some, and Enter a part of it.
        let is_shown = self.screen.until(TYPED, |text| text.contains(message)).await;
        let rests = self.screen.rests(SAID, SAYING).await;
        if !is_shown || !rests {
            // One that hides what is typed, or always moves, has it nevertheless.
        }
        self.screen.press(ENTER).await;
        self.screen.ended().is_none()
    }

    /// Waits until the screen shows no more that it takes input, where it is known how it shows that.
    async fn has_taken(&mut self) -> bool {
        let deadline = Instant::now() + TAKEN;
        let (texts, message) = (&self.texts, self.message);
        while texts.say_when_free() {
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.screen.until(left, |text| !texts.show_free(text, message)).await {
                return false;
            }
            if !self.screen.until(DRAWING, |text| texts.show_free(text, message)).await {
                break;
            }
        }
        true
    }

    /// Waits until it takes input again, or has ended; when.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn free(&mut self) -> Instant {
        loop {
            let shown = self.screen.look();
            if let Some((at, _)) = self.screen.ended() {
                return at;
            }
            let (texts, message) = (&self.texts, self.message);
            if self.screen.is_open() && texts.show_free(&shown.text, message) {
                // What was only erased to be drawn anew is back soon.
                if !self.screen.until(DRAWN, |text| !texts.show_free(text, message)).await {
                    return shown.at;
                }
                continue;
            }
            if !self.leaves_questions && self.at_stop.is_none() {
                self.allow(&shown.text).await;
            }
            self.screen.changed().await;
        }
    }

    /// How many questions stand below the message.
    fn asked(&self, screen: &str) -> usize {
        self.texts.asks.as_ref().map_or(0, |asks| below(screen, self.message).matches(asks).count())
    }

    /// Says yes to the next question that has no answer; one that is gone from the screen has one.
    async fn allow(&mut self, screen: &str) {
        let asked = self.asked(screen);
        self.allowed = self.allowed.min(asked);
        if asked > self.allowed {
            sleep(READING).await;
            self.screen.press(self.texts.allow.as_deref().unwrap_or_default()).await;
            self.allowed += 1;
        }
    }

    /// Presses keys as soon as a key that is held would come again.
    async fn strike(&mut self, keys: &str) {
        if let Some(pressed) = self.pressed {
            sleep_until(pressed + HELD).await;
        }
        self.screen.press(keys).await;
        self.pressed = Some(Instant::now());
    }
}

impl Started for Terminal {
    fn stop<'a>(&'a mut self, way: &'a str) -> BoxFuture<'a, Result<(), StageError>> {
        Box::pin(async move {
            if !self.texts.say_when_free() && way != HANG_UP {
                let why = "it is not known how its screen shows that it takes input again; say `--free` or `--busy`";
                return Err(StageError::NotExpressed(why.to_owned()));
            }
            // What it showed of its work before the stop says nothing of what is left.
            self.at_stop.get_or_insert_with(|| self.screen.text());
            match way {
                "esc" => self.strike(ESC).await,
                "ctrl-c" => self.strike(CTRL_C).await,
                "ctrl-c-twice" => {
                    self.strike(CTRL_C).await;
                    let ended = async { while self.screen.changed().await.is_none() {} };
                    if timeout(TWICE, ended).await.is_err() {
                        self.strike(CTRL_C).await;
                    }
                }
                "ctrl-d" => self.strike(CTRL_D).await,
                HANG_UP => self.screen.hang_up().await,
                way => return Err(no_such_way(way)),
            }
            Ok(())
        })
    }

    fn told(&mut self) -> BoxFuture<'_, Told> {
        Box::pin(async move {
            let at = self.free().await;
            if !self.screen.rests(SAID, SAYING).await {
                // What it says while it moves is read as it is now.
            }
            let said = new_rows(self.at_stop.as_deref().unwrap_or_default(), &self.screen.text());
            let says = if self.texts.say_stopped(&said) { Said::Stopped } else { Said::Nothing };
            Told { at, says, named: vec![said] }
        })
    }

    fn questioned(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let shown = self.screen.look();
                if self.asked(&shown.text) > 0 {
                    return;
                }
                if self.screen.changed().await.is_some() {
                    return std::future::pending().await;
                }
            }
        })
    }

    fn next(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async move {
            if !self.screen.is_open() {
                return Err("its terminal is closed".to_owned());
            }
            let answers = |text: &str| below(text, NEXT).matches(AFTERWARDS).count();
            let before = answers(&self.screen.text());
            if !self.enter(NEXT).await {
                return Err("it has ended".to_owned());
            }
            // An answer above the message is an older one; where the message is not shown, one more is new.
            let is_answered = |text: &str| answers(text) > if text.contains(NEXT) { 0 } else { before };
            let deadline = Instant::now() + PATIENCE;
            while Instant::now() < deadline && !self.screen.until(TAKEN, is_answered).await {
                let shown = self.screen.look();
                // One that takes input again, and shows nothing more for so long, does not answer.
                let is_free = self.texts.show_free(&shown.text, NEXT) && shown.at.elapsed() >= TAKEN;
                if is_free || self.screen.ended().is_some() {
                    break;
                }
            }
            Ok(is_answered(&self.screen.text()))
        })
    }

    fn crash(&mut self) -> Option<String> {
        use std::os::unix::process::ExitStatusExt as _;
        let signal = self.screen.ended().and_then(|(_, status): (Instant, ExitStatus)| status.signal())?;
        let is_asked = self.at_stop.is_some() && [SIGHUP, SIGINT].contains(&signal);
        (!is_asked).then(|| format!("signal {signal}"))
    }

    fn words(&self) -> String {
        last(&self.screen.text())
    }
}
