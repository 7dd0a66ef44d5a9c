//! A terminal that changes its size while text streams: no row is lost, doubled or stale, in one that breaks its rows anew (tmux) and in one that cuts
//! them (the `vt100` crate).

use std::{
    fmt::Write as _,
    fs::File,
    io::Write as _,
    num::NonZero,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use ratatui::text::Line;
use safepoint::event::EventKind;

use super::{World, started};
use crate::render::chat::{
    pane,
    surface::{Narrower, Paint, SETTLES, Surface},
};

const RESIZES: usize = 200;
const SEEDS: [u64; 3] = [1, 0x5eed, 0xdead_beef];

/// A terminal: what it is sent, and all the rows that it has.
trait Emulator {
    /// The rows of the lowest screen that is tried: where rows are broken, a pane that is higher than the screen by that reaches into the
    /// scrollback, where nothing can be erased.
    const LOWEST: u64;

    fn write(&mut self, bytes: &str, mark: &str);
    fn resize(&mut self, size: (u16, u16));
    fn rows(&mut self) -> Vec<String>;
}

/// Numbers that look random, the same for each seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A message of numbered lines in blocks of all kinds; each is narrower than any screen here.
fn message(numbers: &mut Numbers) -> (String, usize) {
    let (mut text, mut count) = (String::new(), 0);
    for _ in 0..RESIZES {
        let mut line = |before: &str, after: &str, text: &mut String| {
            writeln!(text, "{before}line {count:05} 漢é{after}").unwrap();
            count += 1;
        };
        match numbers.below(5) {
            0 => (0..3).for_each(|_| line("", "", &mut text)),
            1 => (0..4).for_each(|_| line("- ", "", &mut text)),
            2 => {
                text.push_str("```rust\n");
                (0..5).for_each(|_| line("", "", &mut text));
                text.push_str("```\n");
            }
            3 => {
                text.push_str("| a | b |\n|---|---|\n");
                (0..3).for_each(|_| line("| ", " | x |", &mut text));
            }
            _ => (0..2).for_each(|_| line("> ", "", &mut text)),
        }
        text.push('\n');
    }
    (text, count)
}

/// Streams the message, resizes at random, and looks at all rows after each size.
fn stream<E: Emulator>(emulator: &mut E, narrower: Narrower, seed: u64) {
    let mut numbers = Numbers(seed);
    let (text, count) = message(&mut numbers);
    let mut world = World::running();
    world.fact(started(
        "grep",
        "something long enough that it is wider than the narrowest of the screens here, and then some",
    ));
    world.state.take_above();
    let mut surface = Surface::new(Paint::Styled, (80, 24)).narrowing(narrower);
    world.state.columns = surface.columns();
    world.type_in("typed here, and longer than a narrow row");
    let mut rest = text.as_str();
    let mut frames = 0;
    for _ in 0..RESIZES {
        let more =
            usize::try_from(numbers.below(2 * text.len() as u64 / RESIZES as u64)).unwrap().min(rest.len());
        let more = (more..).find(|end| rest.is_char_boundary(*end)).unwrap();
        world.run(EventKind::Text(rest[..more].into()));
        rest = &rest[more..];
        draw(&mut world, &mut surface, emulator, &mut frames);
        for _ in 0..=numbers.below(3) {
            let size = (24 + numbers.below(120) as u16, (E::LOWEST + numbers.below(36)) as u16);
            emulator.resize(size);
            surface.resize(size, world.now);
            world.state.columns = surface.columns();
        }
        world.wait(SETTLES);
        draw(&mut world, &mut surface, emulator, &mut frames);
        look(&emulator.rows(), None, (frames, seed));
    }
    world.run(EventKind::Text(rest.into()));
    world.state.end_text();
    draw(&mut world, &mut surface, emulator, &mut frames);
    look(&emulator.rows(), Some(count), (frames, seed));
}

fn draw(world: &mut World, surface: &mut Surface, emulator: &mut impl Emulator, frames: &mut usize) {
    *frames += 1;
    let above = world.state.take_above();
    let mut pane = pane::pane(&world.state, surface.rows() - 1, world.now);
    let mark = format!("frame {frames:05}");
    pane.lines.push(Line::raw(mark.clone()));
    if let Some(frame) = surface.frame(&above, pane) {
        emulator.write(&frame.to_string(), &mark);
    }
}

/// Every numbered line is there once and in order, and so is each row of the pane.
fn look(rows: &[String], all: Option<usize>, (frames, seed): (usize, u64)) {
    let shown =
        || format!("seed {seed:#x}, frame {frames}:\n{}", rows[rows.len().saturating_sub(60)..].join("\n"));
    let number =
        |row: &String| row.split_once("line ").and_then(|(_, rest)| rest.get(..5)?.parse::<usize>().ok());
    let found: Vec<usize> = rows.iter().filter_map(number).collect();
    assert!(found.iter().copied().eq(0..found.len()), "a row is lost or doubled: {found:?}\n{}", shown());
    assert!(all.is_none_or(|all| found.len() == all), "{all:?}: {}", shown());
    for once in ["frame ", "› typed", "● grep", "● shell"] {
        let count = rows.iter().filter(|row| row.contains(once)).count();
        assert_eq!(count, 1, "{once} is there {count} times: {}", shown());
    }
}

/// One long paragraph on a screen that is not full yet: each change of size finds the whole pane.
fn stream_one_paragraph(emulator: &mut impl Emulator) {
    let mut world = World::running();
    world.state.take_above();
    let mut surface = Surface::new(Paint::Styled, (80, 24)).narrowing(Narrower::Breaks).beginning_below();
    let words: Vec<String> = (0..60).map(|number| format!("word{number:02} ")).collect();
    let mut frames = 0;
    for (step, piece) in words.chunks(6).enumerate() {
        world.run(EventKind::Text(piece.concat().as_str().into()));
        draw(&mut world, &mut surface, emulator, &mut frames);
        let size = ([50, 90, 46, 100][step % 4], 24);
        emulator.resize(size);
        surface.resize(size, world.now);
        world.state.columns = surface.columns();
        world.wait(SETTLES);
        draw(&mut world, &mut surface, emulator, &mut frames);
        let rows = emulator.rows();
        let all = rows.join("\n");
        for word in &words[..(step + 1) * 6] {
            assert_eq!(all.matches(word.trim()).count(), 1, "step {step}, {word}:\n{all}");
        }
        assert_eq!(all.matches("frame ").count(), 1, "step {step}:\n{all}");
    }
}

struct Cutting(vt100::Parser);

impl Emulator for Cutting {
    const LOWEST: u64 = 12;

    fn write(&mut self, bytes: &str, _: &str) {
        self.0.process(bytes.as_bytes());
    }

    fn resize(&mut self, (columns, rows): (u16, u16)) {
        self.0.screen_mut().set_size(NonZero::new(rows).unwrap(), NonZero::new(columns).unwrap());
    }

    fn rows(&mut self) -> Vec<String> {
        let screen = self.0.screen_mut();
        let columns = u16::from(screen.size().1);
        screen.set_scrollback(usize::MAX);
        let mut rows = Vec::new();
        for offset in (1..=screen.scrollback()).rev() {
            screen.set_scrollback(offset);
            rows.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, columns));
        rows
    }
}

/// S12.56
#[test]
fn no_row_is_lost_doubled_or_stale_in_a_terminal_that_cuts() {
    for seed in SEEDS {
        println!("seed {seed:#x}");
        let [rows, columns] = [24, 80].map(|size| NonZero::new(size).unwrap());
        stream(&mut Cutting(vt100::Parser::new(rows, columns, 100_000)), Narrower::Cuts, seed);
    }
}

/// A server of tmux, with one pane that shows what it is sent.
struct Tmux {
    socket: String,
    pipe: File,
    folder: tempfile::TempDir,
}

impl Tmux {
    /// None, if tmux is not installed.
    fn start(name: &str) -> Option<Self> {
        let is_there = Command::new("tmux").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !is_there.is_ok_and(|status| status.success()) {
            println!("skipped: tmux is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let socket = folder.path().join(name).to_str().unwrap().to_owned();
        let shows = format!("stty raw -echo; exec cat {}", fifo.display());
        let config = folder.path().join("config");
        std::fs::write(
            &config,
            "set -g history-limit 100000\nset -g status off\nset -g default-terminal tmux-256color\n",
        )
        .unwrap();
        let mut command = Command::new("tmux");
        command.args([
            "-S",
            &socket,
            "-f",
            config.to_str().unwrap(),
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            &shows,
        ]);
        assert!(command.env("LC_ALL", "C.UTF-8").env_remove("TMUX").status().unwrap().success());
        let pipe = File::options().write(true).open(fifo).unwrap();
        Some(Self { socket, pipe, folder })
    }

    fn tmux(&self, args: &[&str]) -> String {
        let done = Command::new("tmux")
            .args(["-S", &self.socket])
            .args(args)
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

impl Emulator for Tmux {
    const LOWEST: u64 = 20;

    fn write(&mut self, bytes: &str, mark: &str) {
        const PATIENCE: Duration = Duration::from_secs(20);
        self.pipe.write_all(bytes.as_bytes()).unwrap();
        let began = Instant::now();
        // The mark is the frame's last row, and the cursor is shown again behind it.
        while !(self.tmux(&["capture-pane", "-p"]).contains(mark)
            && self.tmux(&["display-message", "-p", "#{cursor_flag}"]).starts_with('1'))
        {
            assert!(began.elapsed() < PATIENCE, "not shown: {mark}\n{}", self.tmux(&["capture-pane", "-p"]));
        }
    }

    fn resize(&mut self, (columns, rows): (u16, u16)) {
        self.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    fn rows(&mut self) -> Vec<String> {
        self.tmux(&["capture-pane", "-p", "-S", "-"]).lines().map(str::to_owned).collect()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        drop(Command::new("tmux").args(["-S", &self.socket, "kill-server"]).status());
        assert!(self.folder.path().exists(), "the socket's folder is removed after its server");
    }
}

/// S12.56: tmux moves rows into its history where a narrower screen has more of them, though blank rows are below; no part of the pane
/// goes with them.
#[test]
fn no_pane_is_left_behind_on_a_screen_that_was_not_full() {
    if let Some(mut tmux) = Tmux::start("paragraph") {
        stream_one_paragraph(&mut tmux);
    }
}

/// S12.56
#[test]
fn no_row_is_lost_doubled_or_stale_in_a_terminal_that_breaks_its_rows() {
    for seed in SEEDS {
        println!("seed {seed:#x}");
        if let Some(mut tmux) = Tmux::start("resizes") {
            stream(&mut tmux, Narrower::Breaks, seed);
        }
    }
}
