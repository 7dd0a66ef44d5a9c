//! What a stop, the end of a chat and another process do to the queue.

use super::*;

/// S5.3: a stop that was asked elsewhere, or by a limit, takes the queue back too, once; a preempt and a natural end do not.
#[test]
fn a_stop_takes_the_queue_back_once_and_a_preempt_does_not() {
    let mut world = World::running();
    assert_eq!(world.fact(Fact::StopRequested(request("after-model", None))), [Action::HandBack]);
    assert_eq!(world.fact(Fact::StopRequested(request("now", None))), []);
    assert_eq!(world.ended(ItemOutcome::Interrupted(turn(1))), []);
    let mut world = World::running();
    assert_eq!(world.ended(ItemOutcome::Interrupted(turn(1))), [Action::HandBack], "a limit");
    let mut world = World::running();
    assert_eq!(world.fact(Fact::StopRequested(preempt())), []);
    assert_eq!(world.ended(ItemOutcome::Preempted(turn(1))), []);
    let mut world = World::running();
    assert_eq!(world.ended(ItemOutcome::Completed(turn(1))), []);
}

/// S6.3, S5.3: while a turn is stopped for a newer message the footer says what comes next; Esc then takes the queue back.
#[test]
fn esc_in_a_preempt_takes_the_queue_back() {
    let mut world = World::running();
    world.accepted("mine", PushKind::Queue);
    world.fact(Fact::StopRequested(preempt()));
    world.shows("Esc stops at once · the newer message goes next, the queue after it");
    world.hides("comes back to you");
    assert_eq!(world.tap(KeyCode::Esc), [Action::Stop(StopLevel::Now), Action::HandBack]);
    world.hides("the queue after it");
    world.state.handed("mine".into());
    world.shows("not sent, yours again when the turn has ended:");
    world.shows("what waited comes back to you");
    assert_eq!(world.ended(ItemOutcome::Preempted(turn(1))), []);
    world.shows("› mine");
}

/// S5.3: messages that a stop returned are not mixed with later ones: they wait behind Up.
#[test]
fn what_a_stop_took_back_is_not_mixed_with_what_is_said_after_it() {
    for (typed, is_sent) in [("wait, I mean b", true), ("wait", false)] {
        let mut world = World::running();
        world.tap(KeyCode::Esc);
        world.asked("after-model", None);
        world.state.handed("touch a".into());
        world.type_in(typed);
        if is_sent {
            assert_eq!(world.tap(KeyCode::Enter), push(typed, PushKind::Queue));
        }
        world.ended(ItemOutcome::Interrupted(turn(1)));
        world.shows("not sent (Up brings it back): touch a");
        assert_eq!(world.state.input.text(), if is_sent { "" } else { typed });
        world.state.input.clear();
        assert_eq!(world.tap(KeyCode::Up), []);
        assert_eq!(world.state.input.text(), "touch a");
    }
}

/// S6.12: the chat shows what another process withdraws from the queue, and its text is not lost.
#[test]
fn what_is_withdrawn_from_elsewhere_is_told_and_kept() {
    let mut world = World::running();
    let mine = world.accepted("my plan", PushKind::Queue);
    world.hear(SessionEvent::ItemSettled { item: mine, fate: ItemOutcome::Withdrawn });
    world.shows("taken out of the queue from elsewhere (Up brings it back): my plan");
    assert_eq!(world.tap(KeyCode::Up), []);
    assert_eq!(world.state.input.text(), "my plan");
    let mut world = World::running();
    let mine = world.accepted("my plan", PushKind::Queue);
    world.state.asked_back(&[mine]);
    world.hear(SessionEvent::ItemSettled { item: mine, fate: ItemOutcome::Withdrawn });
    world.hides("my plan");
}

/// S6.10: at the end the chat shows what is not sent, and what waits in the store.
#[test]
fn at_the_end_it_is_told_what_is_not_sent_and_what_waits_on() {
    for is_kept in [false, true] {
        let mut world = World::running();
        world.state.about.is_kept = is_kept;
        let mine = world.accepted("mine", PushKind::Queue);
        let pushed = Pushed { text: "theirs".into(), how: PushKind::Queue, origin: Origin::Elsewhere };
        world.state.hear(ChatEvent::Accepted { id: item(9), item: pushed }, world.now);
        world.control('d');
        world.state.asked_back(&[mine]);
        world.hear(SessionEvent::ItemSettled { item: mine, fate: ItemOutcome::Withdrawn });
        world.hear(SessionEvent::ItemSettled { item: item(9), fate: ItemOutcome::Unhandled });
        world.shows("not sent: mine");
        world.shows(if is_kept { "still queued in ses_1: theirs" } else { "not sent: theirs" });
    }
}

/// S6.5, S6.7: Esc twice, with a steer and a queue that wait: the turn is stopped, the waiting messages
/// return to the sender, and the screen continues.
/// openai/codex#22815: Esc with a message that waits ends the program.
#[test]
fn escape_with_messages_that_wait_stops_the_turn_and_nothing_else() {
    let mut world = World::running();
    let steer = world.accepted("in euros", PushKind::Steer);
    let queued = world.accepted("and the bill", PushKind::Queue);
    assert_eq!(world.tap(KeyCode::Esc), [Action::Stop(StopLevel::AtSafePoint), Action::HandBack]);
    world.asked("after-model", Some(5000));
    world.shows("1. in euros");
    assert_eq!(world.tap(KeyCode::Esc), [Action::Stop(StopLevel::Now)]);
    world.asked("now", None);
    world.state.asked_back(&[steer, queued]);
    for item in [steer, queued] {
        assert_eq!(world.hear(SessionEvent::ItemSettled { item, fate: ItemOutcome::Withdrawn }), []);
    }
    world.state.handed("in euros\nand the bill".into());
    assert!(world.state.input.is_empty(), "not while it stops");
    assert_eq!(world.ended(ItemOutcome::Interrupted(turn(1))), []);
    world.shows("› in euros");
    world.hear(SessionEvent::TurnQuiet {
        turn: turn(1),
        survivors: Vec::new(),
        receipt: Arc::new(receipt()),
    });
    assert_eq!(world.tap(KeyCode::Enter), push("in euros\nand the bill", PushKind::Queue));
}

/// Two Ctrl-C are one wish only within a second: later, and idle, the second clears what is in the input; while the turn
/// still stops, it ends.
#[test]
fn two_ctrl_c_are_one_wish_only_within_a_second() {
    let mut world = World::running();
    world.control('c');
    world.state.handed("later".into());
    world.ended(ItemOutcome::Interrupted(turn(1)));
    world.hear(SessionEvent::TurnQuiet {
        turn: turn(1),
        survivors: Vec::new(),
        receipt: Arc::new(receipt()),
    });
    world.shows("› later");
    world.wait(Duration::from_secs(3));
    assert_eq!(world.control('c'), []);
    assert!(world.state.input.is_empty());
    world.wait(Duration::from_secs(3));
    assert_eq!(world.control('c'), [], "idle, it says what another would do");
    world.wait(Duration::from_secs(3));
    assert_eq!(world.control('c'), [Action::Quit(Leave::Tidily)]);
    let mut world = World::running();
    world.tap(KeyCode::Esc);
    world.asked("after-model", None);
    world.shows("Ctrl-C twice ends");
    let mut world = World::running();
    world.control('c');
    world.asked("after-model", None);
    world.wait(Duration::from_secs(3));
    world.shows("Ctrl-C ends");
    assert_eq!(world.control('c'), [Action::Quit(Leave::AtOnce)]);
}

/// S6.12: Up takes the last queued message back into the input, and only what was typed here.
#[test]
fn up_takes_the_last_queued_message_back() {
    let mut world = World::running();
    world.accepted("one", PushKind::Queue);
    let two = world.accepted("two", PushKind::Queue);
    let pushed = Pushed { text: "from afar".into(), how: PushKind::Queue, origin: Origin::Elsewhere };
    world.state.hear(ChatEvent::Accepted { id: item(9), item: pushed }, world.now);
    world.shows("3. from afar (from elsewhere)");
    assert_eq!(world.tap(KeyCode::Up), vec![Action::Withdraw(vec![two])]);
    world.hear(SessionEvent::ItemSettled { item: two, fate: ItemOutcome::Withdrawn });
    world.state.back("two");
    world.shows("› two");
    world.hides("2. two");
}

/// A message is only said to stand instead of a turn that was stopped for it, and was the last one.
#[test]
fn what_stands_instead_of_a_turn_was_why_that_was_stopped() {
    for (stopped, between, is_shown) in [(Some(1), 1, true), (Some(1), 2, false), (None, 1, false)] {
        let mut world = World::running();
        let id = world.accepted("this instead", PushKind::Preempt);
        if let Some(stopped) = stopped {
            let preempted = PreemptOutcome::StoppedTurn(turn(stopped));
            world.hear(SessionEvent::Preempted { item: id, preempted });
        }
        for ended in 1..=between {
            let fate = ItemOutcome::Completed(turn(ended));
            world.hear(SessionEvent::TurnEnded { turn: turn(ended), fate, receipt: Arc::new(receipt()) });
        }
        world.state.hear(ChatEvent::Started(vec![id]), world.now);
        let above: Vec<String> = world.state.take_above().iter().map(ToString::to_string).collect();
        let said = above.iter().find(|line| line.contains("this instead")).unwrap();
        assert_eq!(said.contains("(instead of the turn before)"), is_shown, "{said}");
    }
}
