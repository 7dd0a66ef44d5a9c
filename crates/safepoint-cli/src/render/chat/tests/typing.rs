//! What helps a person type: menus, search, own commands. No key of it sends, answers or loses anything.

use std::path::PathBuf;

use super::*;
use crate::render::chat::{
    completion::{FoundFiles, Offer},
    own::{OwnNews, Ran},
    typing::{TypingAction, TypingNews},
};

const DOWN: KeyCode = KeyCode::Down;

impl World {
    fn news(&mut self, news: TypingNews) -> Vec<Action> {
        self.state.typing_news(news, self.now)
    }

    fn found(&mut self, query: &str, paths: &[&str]) {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let found = FoundFiles { query: query.into(), of: paths.len(), paths, is_whole: true };
        assert_eq!(self.news(TypingNews::Found(found)), []);
    }

    /// Types letters whatever they ask for.
    fn letters(&mut self, text: &str) -> Vec<Action> {
        text.chars().flat_map(|letter| self.tap(KeyCode::Char(letter))).collect()
    }

    fn ran(&mut self, command: &str, output: &str) {
        let ran = Ran { command: command.into(), exit: "exit 0".into(), output: output.into(), file: None };
        assert_eq!(self.news(TypingNews::Own(OwnNews::Ended(ran))), []);
    }
}

fn typing(action: TypingAction) -> Vec<Action> {
    vec![Action::Typing(action)]
}

/// S12.51: Tab completes what the menu marks, and sends nothing, also during a turn and where nothing fits; Enter sends what is
/// typed unless the arrows have marked a row.
#[test]
fn tab_completes_and_never_sends() {
    let mut world = World::running();
    world.type_in("/re");
    for command in ["/resume ", "/rename ", "/rewind ", "/retry ", "/receipt "] {
        world.shows(command);
    }
    world.shows("resume the turn that was stopped or failed");
    world.shows("Tab completes · Up, Down choose · Esc stops the turn");
    (0..3).for_each(|_| assert_eq!(world.tap(DOWN), []));
    assert_eq!(world.tap(KeyCode::Tab), []);
    assert_eq!(world.state.input.text(), "/retry");
    assert_eq!(world.tap(KeyCode::Enter), push("book a table", PushKind::Queue));
    world.type_in("hello");
    assert_eq!(world.tap(KeyCode::Tab), []);
    assert_eq!(world.state.input.text(), "hello");
    world.state.input.clear();
    world.type_in("/nonsense");
    assert_eq!(world.tap(KeyCode::Tab), []);
    assert_eq!(world.state.input.text(), "/nonsense");
    world.state.input.clear();
    world.type_in("/rec");
    assert_eq!(world.tap(DOWN), []);
    assert_eq!(world.tap(KeyCode::Enter), [], "Enter takes a row that was chosen");
    assert_eq!(world.state.input.text(), "/receipt");
    world.type_in(" ");
    world.hides("show the full receipt");
    assert_eq!(world.tap(KeyCode::Tab), []);
    assert_eq!(world.tap(KeyCode::Enter), []);
    world.shows("no turn has ended yet");
    world.type_in("/for");
    assert_eq!(world.tap(KeyCode::Tab), []);
    assert_eq!(world.state.input.text(), "/fork ", "something may stand behind it");
}

/// S12.52: behind an `@` files are asked for with each letter; the answer to an older question changes nothing.
#[test]
fn files_are_completed_behind_an_at() {
    let mut world = World::new();
    world.type_in("see ");
    assert_eq!(
        world.letters("@m"),
        [typing(TypingAction::Find(String::new())), typing(TypingAction::Find("m".into()))].concat()
    );
    world.shows("looking for files");
    world.found("", &["old.rs"]);
    world.hides("old.rs");
    // Tab before the answer takes the first of it.
    assert_eq!(world.tap(KeyCode::Tab), []);
    assert_eq!(world.state.input.text(), "see @m");
    world.found("m", &["src/main.rs", "a b.md"]);
    assert_eq!(world.state.input.text(), "see @src/main.rs ");
    world.hides("a b.md");
    assert_eq!(world.letters("and @m").len(), 2);
    world.found("m", &["src/main.rs", "a b.md", "src/"]);
    world.shows("src/main.rs");
    world.tap(DOWN);
    assert_eq!(world.tap(KeyCode::Tab), []);
    assert_eq!(world.state.input.text(), "see @src/main.rs and @\"a b.md\" ");
    assert_eq!(world.letters("@s").len(), 2);
    world.found("s", &["src/"]);
    assert_eq!(
        world.tap(KeyCode::Tab),
        typing(TypingAction::Find("src/".into())),
        "a directory is gone on with"
    );
    assert_eq!(world.tap(KeyCode::Esc), [], "Esc closes the menu");
    world.hides("looking for files");
    assert_eq!(world.letters("x"), typing(TypingAction::Find("src/x".into())));
    world.hides("looking for files");
    let text = "see @src/main.rs and @\"a b.md\" @src/x";
    assert_eq!(world.tap(KeyCode::Enter), push(text, PushKind::Queue));
    world.state.input.clear();
    assert_eq!(world.letters("me@example.org"), [], "an address is no file");
    assert_eq!(world.tap(KeyCode::Enter), push("me@example.org", PushKind::Queue));
}

/// S12.52: an image behind an `@` goes with the message; what cannot be attached comes back with the reason.
#[test]
fn images_behind_an_at_go_with_the_message() {
    let mut world = World::new();
    world.letters("what is @a.png, and @\"b c.PDF\"? @main.rs");
    let text = "what is @a.png, and @\"b c.PDF\"? @main.rs".to_owned();
    let files = ["a.png", "b c.PDF"].map(PathBuf::from).to_vec();
    let send = TypingAction::Send { text: text.clone(), how: PushKind::Queue, files };
    assert_eq!(world.tap(KeyCode::Enter), typing(send));
    let why = "not sent: @a.png: it is empty".to_owned();
    assert_eq!(world.news(TypingNews::Unsent { text: text.clone(), why }), []);
    world.shows("not sent: @a.png: it is empty");
    assert_eq!(world.state.input.text(), text);
}

/// The path of an image that is pasted, or dropped on the terminal, can be attached; Tab does it, and any other key leaves it.
#[test]
fn a_pasted_path_of_an_image_is_offered_as_an_attachment() {
    let mut world = World::new();
    for (pasted, is_path) in [
        ("/tmp/a.png", true),
        ("'/tmp/a b.png'", true),
        ("/tmp/a\\ b.png ", true),
        ("file:///tmp/a.png", true),
        ("have a look at a.png", false),
        ("/tmp/a.rs", false),
    ] {
        let asked = world.state.paste(pasted, world.now);
        let look = typing(TypingAction::LookAt(pasted.trim().to_owned()));
        assert_eq!(asked, if is_path { look } else { Vec::new() }, "{pasted}");
        world.state.input.clear();
    }
    world.type_in("see ");
    world.state.paste("/tmp/a.png", world.now);
    let offer =
        |path: &str| Offer { pasted: path.into(), path: "a.png".into(), what: "image/png, 3 kB".into() };
    world.news(TypingNews::Attachable(offer("/tmp/a.png")));
    world.shows("attach a.png");
    world.shows("image/png, 3 kB");
    world.shows("Tab attaches it in place of its path");
    assert_eq!(world.tap(KeyCode::Tab), typing(TypingAction::Find(String::new()))[1..].to_vec());
    assert_eq!(world.state.input.text(), "see @a.png ");
    world.state.paste("/tmp/b.png", world.now);
    world.news(TypingNews::Attachable(offer("/tmp/b.png")));
    world.type_in("!");
    world.hides("Tab attaches");
    assert_eq!(world.state.input.text(), "see @a.png /tmp/b.png!");
}

/// S12.53: Ctrl-R looks through what was entered, also in other chats; what was typed comes back when it is given up.
#[test]
fn the_search_finds_what_was_entered_and_sends_nothing() {
    let mut world = World::new();
    world.news(TypingNews::Earlier(vec!["make the tests pass".into(), "cargo test".into()]));
    world.say("hello");
    world.type_in("draft");
    world.control('r');
    world.shows("Ctrl-R older · Enter takes it");
    world.type_in("Test");
    assert_eq!(world.state.input.text(), "cargo test");
    world.control('r');
    assert_eq!(world.state.input.text(), "make the tests pass");
    world.control('r');
    assert_eq!(world.state.input.text(), "make the tests pass");
    world.shows("nothing earlier has “Test”");
    world.control('s');
    assert_eq!(world.state.input.text(), "cargo test");
    assert_eq!(world.control('c'), []);
    assert_eq!(world.state.input.text(), "draft");
    world.hides("Ctrl-R older");
    world.control('r');
    world.type_in("mak");
    assert_eq!(world.tap(KeyCode::Enter), [], "it takes, and sends nothing");
    assert_eq!(world.state.input.text(), "make the tests pass");
    world.control('7');
    assert_eq!(world.state.input.text(), "draft", "that is a step");
    world.control('r');
    world.type_in("zzz");
    assert_eq!(world.state.input.text(), "draft");
    world.tap(KeyCode::Esc);
    assert_eq!(world.state.input.text(), "draft");
}

/// S12.51, S8.2: no letter of a search answers a question, and Esc stops the turn also while a menu or the search is open.
#[test]
fn a_search_answers_nothing_and_delays_no_stop() {
    let mut world = World::running();
    world.control('r');
    world.question();
    world.wait(CALM);
    world.hides("y yes · n no");
    assert_eq!(world.letters("yna"), []);
    assert_eq!(world.state.questions.len(), 1);
    assert_eq!(world.tap(KeyCode::Esc), [Action::Stop(StopLevel::AtSafePoint), Action::HandBack]);
    assert!(!world.state.is_searching());
    let mut world = World::running();
    world.type_in("/re");
    assert_eq!(world.tap(KeyCode::Esc), [Action::Stop(StopLevel::AtSafePoint), Action::HandBack]);
    assert_eq!(world.state.input.text(), "/re");
    world.hides("/receipt");
}

/// S12.51: in a message of several rows Up and Down move; at the first and the last row they recall.
#[test]
fn up_recalls_only_from_the_first_row() {
    let mut world = World::new();
    world.say("earlier");
    world.type_in("one");
    world.control('j');
    world.type_in(&"long ".repeat(20));
    world.tap(KeyCode::Up);
    world.tap(KeyCode::Up);
    assert!(world.state.input.text().starts_with("one\nlong"), "it has moved by rows, the broken ones too");
    world.tap(KeyCode::Up);
    assert_eq!(world.state.input.text(), "earlier");
    world.tap(KeyCode::Down);
    assert!(world.state.input.text().starts_with("one\nlong"));
}

/// S12.53: a command of the person's own is asked of no approver; its output goes with the next message, once.
#[test]
fn the_output_of_an_own_command_goes_with_the_next_message() {
    let mut world = World::new();
    assert_eq!(world.say("!git status"), typing(TypingAction::Run("git status".into())));
    world.shows("! git status  0 s");
    world.news(TypingNews::Own(OwnNews::Lines("on main\nclean \x1b[31m\n".into())));
    world.shows("  on main");
    world.shows("clean \\u{1b}[31m");
    assert_eq!(world.say("!ls"), [], "one at a time");
    world.shows("a command of yours runs already; Esc stops it");
    assert_eq!(world.state.input.text(), "!ls", "and it is not lost");
    world.state.input.clear();
    world.ran("git status", "on main\nclean\n");
    world.shows("! git status: exit 0, after 0 s");
    world.shows("with your next message: the output of git status");
    let [Action::Push { text, how: PushKind::Queue }] = &world.say("why?")[..] else { panic!("no message") };
    let sent = "why?\n\n[I ran this command myself: git status\nexit 0; it wrote:]\non main\nclean\n[end of its output]";
    assert_eq!(text, sent);
    let id = world.accepted(sent, PushKind::Queue);
    world.state.hear(ChatEvent::Started(vec![id]), world.now);
    world.shows("› why?");
    world.shows("[with the output of git status]");
    world.hides("I ran this command myself");
    assert_eq!(world.say("again"), push("again", PushKind::Steer), "once");
    // Taken back, it is folded again and can be sent as it was.
    world.state.input.clear();
    world.state.back(sent);
    world.shows("[with the output of git status]");
    assert_eq!(world.tap(KeyCode::Enter), push(sent, PushKind::Steer));
}

/// S12.53: Esc and Ctrl-C stop a command of the person's own, beside the turn if one runs; `!` alone drops its output.
#[test]
fn a_stop_reaches_an_own_command() {
    let mut world = World::new();
    world.say("!sleep 100");
    world.shows("Enter sends · Esc stops your command");
    assert_eq!(world.tap(KeyCode::Esc), typing(TypingAction::StopOwn));
    world.shows("sleep 100  stopping");
    assert_eq!(world.control('c'), typing(TypingAction::StopOwn), "and chat and turn stay");
    world.ran("sleep 100", "");
    world.say("!");
    world.shows("the output of a command does not go with your next message");
    assert_eq!(world.say("hi"), push("hi", PushKind::Queue));
    let mut world = World::running();
    world.say("!sleep 100");
    let stop =
        [Action::Stop(StopLevel::AtSafePoint), Action::HandBack, Action::Typing(TypingAction::StopOwn)];
    assert_eq!(world.tap(KeyCode::Esc), stop);
}

/// S12.51: an editor that fails changes nothing; what one returns takes the place of what was typed.
#[test]
fn the_external_editor_changes_the_input_only_if_it_ends_well() {
    let mut world = World::new();
    world.type_in("draft");
    let asked = world.control('g');
    let [Action::Typing(TypingAction::Edit(draft))] = &asked[..] else { panic!("no editor: {asked:?}") };
    world.news(TypingNews::Edited(
        draft.clone(),
        Err("false ended with exit status: 1, so nothing was changed".into()),
    ));
    assert_eq!(world.state.input.text(), "draft");
    world.shows("so nothing was changed");
    world.news(TypingNews::Edited(draft.clone(), Ok("one\ntwo".into())));
    assert_eq!(world.state.input.text(), "one\ntwo");
}
