//! A chat where there is no terminal: lines from stdin, one turn each, text to stdout, everything else to stderr.

use std::{
    io::IsTerminal as _,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use safepoint::{
    Grace, Reason, Receipt, StopRequest,
    event::{EventKind, Fact},
    ids::SessionId,
    receipt::Ending,
    session::{ItemOutcome, Policy, SessionEvent, SessionStop},
};
use safepoint_tools::process::Processes;
use tokio::io::{AsyncBufReadExt as _, BufReader, Split, Stdin};

use super::driver::Times;
use crate::{
    args::run::OnDisconnect,
    command::leaving::CommandEnd,
    exit::{self, code},
    output::Stream,
    render::{
        call::in_words,
        chat::{commands, queue::Origin},
        hints,
        screen::Screen,
        text::at_running,
        turn::missed,
    },
    session::host::Host,
    signals::{Answered, Answers, LAST_CAP, ReceivedSignal, Signal, Signals, StopLevel},
};

/// Runs one turn for each line, until the input or the session ends; `first` is a line before those of the input. `kept` is the
/// stored session, if there is one.
pub(crate) async fn chat(
    host: &Arc<Host>,
    screen: &Arc<Screen>,
    (processes, times): (&Processes, Times),
    (kept, mut first): (Option<&SessionId>, Option<String>),
) -> anyhow::Result<ExitCode> {
    let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
    let mut turns = Turns {
        host,
        screen,
        times,
        signals: Signals::listen(OnDisconnect::Stop)?,
        pressed: Arc::default(),
        code: 0,
        ending: None,
        shown: None,
        is_at_keyboard: std::io::stdin().is_terminal() && Stream::Err.is_terminal(),
    };
    let mut events = host.session.events();
    loop {
        let line = match first.take() {
            None => turns.line(&mut lines).await?,
            line => line,
        };
        let Some(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        match turns.typed_command(&line) {
            Some(TypedCommand::Quit) => break,
            Some(TypedCommand::Shown) => continue,
            None => {}
        }
        if let Err(error) = host.push(line, Policy::Enqueue, None, Origin::Here) {
            screen.note(&format!("safepoint: {error}"));
            break;
        }
        turns.signals.turn_begins();
        if !turns.follow(&mut events).await {
            break;
        }
    }
    processes.end_jobs();
    let cap = if turns.is_pressed() { LAST_CAP } else { times.cleanup_cap };
    drop(host.session.stop(SessionStop::now().cleanup_cap(cap)));
    drop(host.session.done().await);
    let Turns { code, ending, mut signals, .. } = turns;
    let over = CommandEnd { code: exit::with(code), ending, kept, on_disconnect: OnDisconnect::Stop };
    Ok(over.leave(&mut signals, screen).await)
}

struct Turns<'a> {
    host: &'a Arc<Host>,
    screen: &'a Arc<Screen>,
    times: Times,
    signals: Signals,
    /// The number of signals that requested a stop, counted by the signal thread.
    pressed: Arc<AtomicU32>,
    code: u8,
    /// How the last turn ended; none if there was none.
    ending: Option<Ending>,
    /// The receipt of a turn that ended early; its `running` row is not shown yet.
    shown: Option<Arc<Receipt>>,
    /// Whether a person types the lines: they see where, and may type a command.
    is_at_keyboard: bool,
}

/// A command that was typed as a line. Exhaustive: the loop does what each says.
enum TypedCommand {
    Quit,
    Shown,
}

impl Turns<'_> {
    /// The next line. None at the end of input, after a signal, without a reader of stdout, or after the session's end.
    async fn line(&mut self, lines: &mut Split<BufReader<Stdin>>) -> anyhow::Result<Option<String>> {
        const AGAIN: Duration = Duration::from_secs(5);
        let mut warned: Option<Instant> = None;
        self.prompt();
        loop {
            tokio::select! {
                biased;
                // Losing this branch loses nothing: the signal stays pending.
                got = self.signals.next() => {
                    let is_first = warned.is_none_or(|warned| warned.elapsed() >= AGAIN);
                    if got == Signal::Interrupt && is_first && std::io::stdin().is_terminal() {
                        warned = Some(Instant::now());
                        self.screen.note("Ctrl-C again ends this chat; so does Ctrl-D");
                        self.prompt();
                        continue;
                    }
                    self.code = got.exit_code();
                    return Ok(None);
                }
                // Losing this one loses nothing: what stdout has refused stays refused.
                _ = self.screen.printer.closed() => return Ok(None),
                // Losing this one loses nothing: every waiter sees the same end.
                _ = self.host.session.done() => return Ok(None),
                // Losing this one loses nothing: what was read of a line stays read.
                line = lines.next_segment() => return Ok(line?.map(|line| self.text(line))),
            }
        }
    }

    fn prompt(&self) {
        if self.is_at_keyboard {
            self.screen.prompt();
        }
    }

    /// A command of the chat that a person typed. What is no command is a message; so is each line that comes from a program.
    fn typed_command(&self, line: &str) -> Option<TypedCommand> {
        let name = line.trim().strip_prefix('/').filter(|_| self.is_at_keyboard)?;
        let name = name.split(char::is_whitespace).next().unwrap_or_default();
        match name {
            "quit" | "exit" | "q" => return Some(TypedCommand::Quit),
            "help" | "?" => self.screen.note(
                "each line is a message; /quit or Ctrl-D ends the chat, Ctrl-C stops a turn. The other commands need a terminal \
                 that can be drawn on (TERM is not dumb)",
            ),
            name if commands::is_built_in(name) => {
                self.screen.note(&format!("/{name} needs a terminal that can be drawn on; here there are /help and /quit"));
            }
            _ => return None,
        }
        Some(TypedCommand::Shown)
    }

    /// The text of a line; empty, with a note, if the line is no text.
    fn text(&mut self, line: Vec<u8>) -> String {
        let Ok(mut text) = String::from_utf8(line) else {
            self.screen.note("safepoint: a line is not UTF-8; it was not sent");
            self.code = 1;
            return String::new();
        };
        text.truncate(text.strip_suffix('\r').map_or(text.len(), str::len));
        text
    }

    /// Shows a turn until it is quiet. Returns whether another line may come.
    async fn follow(&mut self, events: &mut safepoint::event::Events<SessionEvent>) -> bool {
        let _answers = self.answers();
        loop {
            let event = tokio::select! {
                biased;
                // Losing this branch loses nothing: the signal stays pending.
                received = self.signals.received() => {
                    self.signalled(received);
                    continue;
                }
                // Losing this one loses nothing: the reader's place moves only when an event is returned.
                event = events.next() => event,
            };
            let Some(event) = event else {
                // The session ended before its last turn's end was known; the last line shows that.
                self.tell_end(None, &[]);
                return false;
            };
            match event.kind {
                SessionEvent::Run { event, .. } => self.show(&event.kind),
                SessionEvent::TurnEnded { fate, receipt, .. } => {
                    // What ended it was asked a moment before its end was seen.
                    while let Some(received) = self.signals.received_already() {
                        self.signalled(received);
                    }
                    self.ended(fate, &receipt);
                    // Another line would wait behind the decision.
                    if matches!(fate, ItemOutcome::Suspended(_)) {
                        let id = &self.host.id;
                        self.screen.note(&format!(
                            "safepoint: it waits for a decision: safepoint approvals {id}, then approve, deny or respond"
                        ));
                        self.code = code::SUSPENDED;
                    }
                }
                SessionEvent::TurnQuiet { survivors, .. } => {
                    self.tell_end(Some(event.at), &survivors);
                    return !self.is_pressed() && self.code != code::SUSPENDED;
                }
                _ => {}
            }
        }
    }

    /// The `running` row and the warnings of the receipt that was shown. What is still running is shown for every turn.
    fn tell_end(&mut self, quiet: Option<Timestamp>, survivors: &[String]) {
        match self.shown.take() {
            Some(receipt) => {
                let mut receipt = Receipt::clone(&receipt);
                receipt.quiet_at = quiet.filter(|_| survivors.is_empty());
                receipt.survivors = survivors.to_vec();
                self.screen.note(at_running(&receipt.to_string()).1);
            }
            None if survivors.is_empty() => {}
            None => self.screen.note(&format!("warning: still running: {}", survivors.join(", "))),
        }
    }

    /// Stops the turn on the signal thread, also while output is being written (S12.5).
    fn answers(&self) -> Answers {
        let (host, pressed, times) = (Arc::clone(self.host), Arc::clone(&self.pressed), self.times);
        self.signals.answer(move |got| Some(stop(got, &host, &pressed, times)))
    }

    fn signalled(&mut self, received: ReceivedSignal) {
        if received.answered == Answered::NotYet {
            stop(received.got, self.host, &self.pressed, self.times);
        }
        self.code = received.got.exit_code();
        self.screen.note("Stopping");
    }

    fn is_pressed(&self) -> bool {
        // Relaxed: the count orders nothing else. A signal is counted before it is sent to this task, and the
        // channel orders the two.
        self.pressed.load(Ordering::Relaxed) > 0
    }

    fn show(&self, kind: &EventKind) {
        match kind {
            EventKind::Text(text) => self.screen.text(text),
            EventKind::Provider(block) => self.screen.provider(block),
            EventKind::Lagged { count } => self.screen.note(&missed(*count)),
            EventKind::Fact(fact) => match &**fact {
                Fact::ModelEnded { message, .. } => self.screen.end_message(message),
                Fact::CallStarted { name, args, .. } => {
                    self.screen.note(&format!("▸ {name} {}", in_words(name, args)));
                }
                Fact::CallEnded { report, .. } => {
                    self.screen.note(&format!("▪ {}", crate::render::approval::ended(report)));
                }
                Fact::Settled { error: Some(error), .. } => {
                    self.screen.note(&format!("safepoint: {}", hints::in_words(&error.message)));
                    if let Some(hint) = &error.hint {
                        self.screen.note(&format!("  hint: {}", hints::here(&error.code, hint)));
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn ended(&mut self, fate: ItemOutcome, receipt: &Arc<Receipt>) {
        self.ending = Some(match fate {
            ItemOutcome::Completed(_) => Ending::Done,
            ItemOutcome::Failed(_) => Ending::Failed,
            ItemOutcome::Suspended(_) => Ending::Suspended,
            _ => Ending::Stopped,
        });
        self.screen.end_line();
        match fate {
            ItemOutcome::Completed(_) => self.code = 0,
            ItemOutcome::Failed(_) => self.code = 1,
            _ => {
                self.screen.note(at_running(&receipt.to_string()).0);
                self.shown = Some(Arc::clone(receipt));
                if !self.is_pressed() {
                    self.code = code::STOPPED;
                }
            }
        }
    }
}

/// Requests the stop that a signal means for the running turn.
fn stop(got: Signal, host: &Host, pressed: &AtomicU32, times: Times) -> StopLevel {
    // One update, so that of two signals at once exactly one is the first. Relaxed: the count orders nothing
    // else.
    let is_first = pressed.fetch_add(1, Ordering::Relaxed) == 0;
    let (request, level) = match Grace::try_from(times.grace) {
        Ok(grace) if is_first && got != Signal::Hangup => {
            (StopRequest::graceful(grace).with_cleanup_cap(times.cleanup_cap), StopLevel::AtSafePoint)
        }
        _ => (StopRequest::now().with_cleanup_cap(LAST_CAP), StopLevel::Now),
    };
    drop(host.session.stop_turn(None, request.with_reason(Reason::user("a signal"))));
    level
}
