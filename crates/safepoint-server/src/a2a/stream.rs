//! What happens with a task, as its readers get it: the task, then each change and each piece of what the agent says.
//!
//! **Invariants**: the task is first; no state follows one that is over; every reader gets the changes that are recorded, in the order of
//! the journal.

use std::{collections::VecDeque, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    message::HistoryLength,
    task::{TaskState, TaskView, artifact, context},
};
use crate::{
    caller::{Caller, KeptItem},
    follow::{ItemEvent, ItemEvents, ShownEvent, SuspendedEvent, SuspendedItem},
    problem::Answered,
};

/// How long the end of a canceled task waits for what is known of it to be all: whether something is alive.
const QUIET_WITHIN: Duration = Duration::from_secs(1);
/// How often that is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// A reader of a task.
pub(super) struct TaskStream {
    by: Caller,
    task: KeptItem,
    at_question: AtQuestion,
    stage: TaskStage,
    ready: VecDeque<Value>,
    /// The state that the reader knows.
    known: TaskState,
    /// What is recorded before this position is known too.
    from: u64,
    said: SaidText,
}

/// What a stream does at a question. Exhaustive: it ends, or waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtQuestion {
    Ends,
    Waits,
}

/// What comes next of a task. Exhaustive: a piece of it, or nothing for a while.
pub(super) enum TaskPiece {
    Value(Value),
    KeepAlive,
}

/// Where a reader is. Exhaustive: in the events of a turn, at a question, or at the end.
enum TaskStage {
    Reading(Box<ItemEvents>),
    Waiting(Box<SuspendedItem>),
    Over,
}

/// The text of the artifact, as far as it was sent.
#[derive(Default)]
struct SaidText {
    round: Option<u64>,
    text: String,
}

impl TaskStream {
    /// A reader of the task, by these events of it if there are any.
    ///
    /// # Errors
    /// `too_many_readers`, and the store's.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn of(
        by: &Caller,
        task: KeptItem,
        events: Option<ItemEvents>,
        (at_question, history): (AtQuestion, HistoryLength),
    ) -> Answered<Self> {
        let head = by.store().open(task.kept.id()).await?.head;
        let view = TaskView::of(by, &task).await?;
        let mut stream = Self {
            by: by.clone(),
            task,
            at_question,
            stage: TaskStage::Over,
            ready: VecDeque::from([json!({"task": view.value(history)})]),
            known: view.state,
            from: head,
            said: SaidText::default(),
        };
        match (view.state, events) {
            (state, _) if state.is_terminal() => {}
            (TaskState::InputRequired, _) => stream.question(&view).await?,
            (_, Some(events)) => stream.stage = TaskStage::Reading(Box::new(events)),
            (_, None) => stream.read_on().await?,
        }
        Ok(stream)
    }

    /// What comes next; none at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost but a piece that was being made.
    pub(super) async fn next(&mut self) -> Option<TaskPiece> {
        loop {
            if let Some(value) = self.ready.pop_front() {
                return Some(TaskPiece::Value(value));
            }
            let is_silent = match &mut self.stage {
                TaskStage::Over => return None,
                TaskStage::Reading(events) => match events.next().await {
                    Ok(ItemEvent::Shown(event)) => self.shown(&event).await.map(|()| false),
                    Ok(ItemEvent::KeepAlive) => Ok(true),
                    Ok(ItemEvent::Rest(item)) => self.rest(TaskState::of(&item)).await.map(|()| false),
                    Ok(ItemEvent::Bye) => return None,
                    Err(problem) => Err(problem),
                },
                TaskStage::Waiting(item) => match item.next().await {
                    // It continues, or was canceled.
                    Ok(SuspendedEvent::Awake) => self.rest(TaskState::Canceled).await.map(|()| false),
                    Ok(SuspendedEvent::KeepAlive) => Ok(true),
                    Ok(SuspendedEvent::Bye) => return None,
                    Err(problem) => Err(problem),
                },
            };
            match is_silent {
                Ok(true) => return Some(TaskPiece::KeepAlive),
                Ok(false) => {}
                // The reader comes back, and finds the task.
                Err(_problem) => return None,
            }
        }
    }

    async fn read_on(&mut self) -> Answered<()> {
        let events = ItemEvents::of(&self.by, &self.task.kept, self.task.number).await?;
        self.stage = TaskStage::Reading(Box::new(events));
        Ok(())
    }

    async fn question(&mut self, view: &TaskView) -> Answered<()> {
        self.stage = match self.at_question {
            AtQuestion::Ends => TaskStage::Over,
            AtQuestion::Waits => {
                let mut item = SuspendedItem::of(&self.by, &self.task.kept, self.task.number).await?;
                item.shows(view.questions());
                TaskStage::Waiting(Box::new(item))
            }
        };
        Ok(())
    }

    async fn shown(&mut self, event: &ShownEvent) -> Answered<()> {
        if let Some(position) = event.position {
            if position < self.from {
                return Ok(());
            }
            self.from = position + 1;
        }
        if !event.is_root() {
            return Ok(());
        }
        let data = &event.data;
        let (round, text) = (data["round"].as_u64(), data["text"].as_str().unwrap_or_default());
        let piece = match event.kind.as_str() {
            "turn_started" => {
                self.working().await?;
                None
            }
            "text_delta" => self.said.delta(round, text),
            "partial" | "model_ended" => self.said.whole(round, text),
            "stop_requested" => {
                let view = TaskView::of(&self.by, &self.task).await?;
                if view.state == TaskState::Working {
                    self.ready.push_back(view.update());
                }
                None
            }
            _ => None,
        };
        self.piece(piece);
        Ok(())
    }

    async fn working(&mut self) -> Answered<()> {
        if self.known != TaskState::Working {
            let view = TaskView::of(&self.by, &self.task).await?;
            if view.state == TaskState::Working {
                self.known = TaskState::Working;
                self.ready.push_back(view.update());
            }
        }
        Ok(())
    }

    fn piece(&mut self, piece: Option<(String, bool)>) {
        let Some((text, is_appended)) = piece else { return };
        self.ready.push_back(json!({"artifactUpdate": {
            "taskId": self.task.name().to_string(), "contextId": context(&self.task.kept),
            "artifact": artifact(&text), "append": is_appended,
        }}));
    }

    /// The task is over, has a question, or continues after one.
    async fn rest(&mut self, seen: TaskState) -> Answered<()> {
        let view = self.settled(seen).await?;
        match view.state {
            TaskState::Submitted | TaskState::Working => {
                self.working().await?;
                return self.read_on().await;
            }
            // A reader that looks late misses no change: what leads from a question to these is work.
            TaskState::Completed | TaskState::Failed | TaskState::InputRequired
                if self.known == TaskState::InputRequired =>
            {
                self.ready.push_back(view.worked());
            }
            _ => {}
        }
        if view.state == TaskState::Completed {
            let piece = self.said.answer(view.text.as_deref().unwrap_or_default());
            self.piece(piece);
        }
        self.known = view.state;
        self.ready.push_back(view.update());
        if view.state == TaskState::InputRequired {
            return self.question(&view).await;
        }
        self.stage = TaskStage::Over;
        Ok(())
    }

    /// The task, and whether something of it is alive, if that is known soon.
    async fn settled(&self, seen: TaskState) -> Answered<TaskView> {
        let over = Instant::now() + QUIET_WITHIN;
        loop {
            let view = TaskView::of(&self.by, &self.task).await?;
            let is_canceled = (seen, view.state) == (TaskState::Canceled, TaskState::Canceled);
            let is_known = !is_canceled || view.is_quiet_known();
            if is_known || Instant::now() >= over {
                return Ok(view);
            }
            sleep(LOOK).await;
        }
    }
}

impl SaidText {
    /// More of a message: the text to send, and whether it goes behind what was sent.
    fn delta(&mut self, round: Option<u64>, text: &str) -> Option<(String, bool)> {
        if text.is_empty() {
            return None;
        }
        let is_appended = self.round == round && !self.text.is_empty();
        if self.round != round {
            (self.round, self.text) = (round, String::new());
        }
        self.text.push_str(text);
        Some((text.to_owned(), is_appended))
    }

    /// A message as far as it is.
    fn whole(&mut self, round: Option<u64>, text: &str) -> Option<(String, bool)> {
        if self.round != round {
            self.text.clear();
        }
        self.round = round;
        self.answer(text)
    }

    /// The message that is the artifact.
    fn answer(&mut self, text: &str) -> Option<(String, bool)> {
        if text.is_empty() || text == self.text {
            return None;
        }
        let rest = text.strip_prefix(self.text.as_str()).filter(|_| !self.text.is_empty());
        let piece = rest.map_or_else(|| (text.to_owned(), false), |rest| (rest.to_owned(), true));
        text.clone_into(&mut self.text);
        Some(piece)
    }
}
