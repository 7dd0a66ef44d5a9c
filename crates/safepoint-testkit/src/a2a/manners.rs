//! How a server behaves: what it speaks, what its work is, and what is wrong with it.

/// The wire that a server speaks. Exhaustive: those that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum A2aWire {
    /// Protocol 1.0.
    #[default]
    V1,
    /// Protocol 0.3, as a2a-java speaks it: a new subscription starts with the events after it. The task then
    /// holds the next part twice.
    V03,
    /// Protocol 0.2.5, as Embabel speaks it: a message says which kinds of output are taken.
    V02,
}

/// A step of a server's work. Exhaustive: the test chooses these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkStep {
    /// Says more of its answer, as a part of an artifact.
    Say(String),
    /// Says more of the artifact of this name, the first: an answer may be several, which grow in turn.
    SayIn(String, String),
    /// Says something in passing, as the message of its status.
    Note(String),
    /// Waits until the test [lets it continue](super::A2aServer::let_on).
    Wait,
    /// Asks a person something, and waits for the answer.
    Ask(String),
    /// Asks a person to sign in somewhere, and waits.
    SignIn(String),
    /// Fails.
    Fail(String),
    /// Begins its answer anew: what was said of it is taken back.
    Anew(String),
}

/// What a server does when it is asked to stop. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCancel {
    /// It ends the work, and then says so.
    #[default]
    Ends,
    /// It says so while the work continues, as Spring AI's executor does.
    Says,
    /// It says so while the work continues, and the task is completed after all (a2aproject/a2a-js#132).
    SaysAndCompletes,
    /// It answers with the task as it is, and does nothing (Molecule-AI/molecule-core#173).
    Nods,
    /// It refuses, as Koog does where nothing else is written.
    Refuses,
    /// It is not implemented: the request fails, as Embabel's does, and so does a request for the task.
    Unwritten,
    /// It marks the task as failed, with an error for an answer, and ends the work, as the PyPI `a2a-sdk`
    /// does where an executor raises `NotImplementedError` (google/adk-python#4127).
    EndsWithAnError,
    /// It refuses, but calls its task canceled, while the work continues.
    RefusesAndSays,
    /// It answers with another task, which is canceled, while the work continues.
    SaysOfAnother,
    /// It answers with the canceled task under an id that is not the cancel's id, while the work continues.
    AnswersAnother,
    /// Its work comes to its end as it is asked: the request is answered with a task that is canceled, and
    /// then the stream tells the rest of the answer, and that the task is completed.
    SaysTooLate,
    /// Its work comes to its end as it is asked, and the request is answered with a task that is completed.
    Completes,
    /// It calls its task completed, on its stream and in its answer, while the work continues.
    ClaimsAnEnd,
    /// It answers with a result that names no task, while the work continues.
    SaysNothingOfIt,
    /// It answers twice with the canceled task in one body, while the work continues.
    SaysTwice,
    /// It never answers.
    Deaf,
    /// It hangs up.
    HangsUp,
}

/// How a server reports what it does. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tells {
    /// As a stream that begins with the task.
    #[default]
    Task,
    /// As a stream that begins with a status, and says what it was asked itself, as Embabel's does.
    Status,
    /// As a stream of one message, without any task.
    Message,
    /// It does not stream: its tasks can be looked at.
    Looks,
}

/// What is wrong with a server's streams. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// Nothing.
    #[default]
    Well,
    /// The server cuts the first stream after this many events; a client can subscribe again.
    CutAfter(usize),
    /// The server cuts the first stream after this many events; a client cannot subscribe again, but can read
    /// the task.
    CutForGood(usize),
    /// Each one is cut behind its first event, and nothing else is answered.
    CutAndGone,
    /// Each one is cut behind its first event, as by a proxy that is short of patience.
    CutEach,
    /// The server cuts the first stream after this many events; each later subscription ends without an
    /// event.
    EmptyAfter(usize),
    /// The server cuts the first stream after this many events; later subscriptions stay silent.
    DeafAfter(usize),
    /// The server cuts the first stream after this many events; later subscriptions get no answer.
    UnansweredAfter(usize),
    /// The first stream stays open after this many events, and sends nothing more.
    HushAfter(usize),
    /// The first event of a message's stream is the task after this many of its events, with what it has by then;
    /// the stream continues from there.
    BeginAfter(usize),
    /// The first stream sends nothing after this many events until the test [lets it](super::A2aServer::name).
    LagAfter(usize),
    /// They tell each part of an answer twice.
    TellTwice,
    /// They are known by the ids of their requests, as Embabel's are: the newest of an id takes all that
    /// comes.
    ByRequestId,
    /// Nothing comes before the test has the server [name](super::A2aServer::name) the task.
    NamedLate,
    /// A message is answered with this HTTP status; from 500 on its work has begun by then.
    Status(u16),
    /// A message is answered with an error, by JSON-RPC.
    Refused,
    /// What comes is no JSON.
    Garbage,
    /// The stream has one event of this many bytes.
    Huge(usize),
    /// What comes is a web page.
    Page,
    /// What comes is not UTF-8.
    Binary,
    /// Nothing comes.
    Silent,
}

/// What is wrong with a server's card. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Card {
    /// Nothing.
    #[default]
    Well,
    /// It never ends.
    Endless,
    /// It never comes.
    Silent,
    /// It is no JSON.
    Garbage,
    /// It names no place where JSON-RPC is spoken.
    Elsewhere,
    /// It sends its callers, and what they send along, to another host.
    Abroad,
    /// There is none.
    Missing,
}

/// Who names a server's conversations. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contexts {
    /// The client that begins one.
    #[default]
    Callers,
    /// The server: a name that it does not know is another one there.
    Own,
}

/// How a server answers a request for a task. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Looks {
    /// As it stands.
    #[default]
    Well,
    /// With this HTTP status, and a page that says why.
    Status(u16),
    /// There is no such method.
    NoMethod,
    /// Not at all: who looks waits.
    Silent,
    /// The first requests, this many, fail with HTTP status 500; later ones show the task as it is.
    FailFirst(usize),
    /// The first requests, this many, show the task as just begun, without text; later ones show it as it is.
    Behind(usize),
}

/// How a server behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct A2aManners {
    /// What it speaks.
    pub wire: A2aWire,
    /// What its work is.
    pub plan: Vec<WorkStep>,
    /// What it does when it is asked to stop.
    pub on_cancel: OnCancel,
    /// How it tells what it does.
    pub tells: Tells,
    /// What is wrong with its streams.
    pub streams: Streams,
    /// What is wrong with its card.
    pub card: Card,
    /// Who names its conversations.
    pub contexts: Contexts,
    /// How many requests for a task get 429 (come again later) before the server shows it.
    pub busy: usize,
    /// How it answers who looks at a task.
    pub looks: Looks,
    /// Behind how many of its events each stream is cut, from the first one on; those beyond are not.
    pub cuts: Vec<usize>,
    /// How many earlier events a renewed stream repeats. In 1.0 the stream first sends a task that already
    /// contains them. The PyPI `a2a-sdk` 1.0 does this: it listens to its queue and then reads the task.
    pub repeats: usize,
    /// The server's name, and its text where it refuses something. `None`: `fake`, and its own texts.
    pub word: Option<String>,
}

impl A2aManners {
    /// An honest server: it says `half`, waits, says ` done` and has completed its task; a stop ends its
    /// work.
    #[must_use]
    pub fn honest(wire: A2aWire) -> Self {
        let plan = vec![WorkStep::Say("half".into()), WorkStep::Wait, WorkStep::Say(" done".into())];
        Self { wire, plan, ..Self::default() }
    }

    /// Like Spring AI's: 0.3 and no streams; a stop is only said.
    #[must_use]
    pub fn like_spring_ai() -> Self {
        Self { on_cancel: OnCancel::Says, tells: Tells::Looks, ..Self::honest(A2aWire::V03) }
    }

    /// Like Embabel's: 0.2.5; its stop is not implemented, and its streams are known by their request ids.
    #[must_use]
    pub fn like_embabel() -> Self {
        let manners = Self::honest(A2aWire::V02).on_cancel(OnCancel::Unwritten).tells(Tells::Status);
        manners.streams(Streams::ByRequestId)
    }

    /// Like Koog's: 0.3; it refuses.
    #[must_use]
    pub fn like_koog() -> Self {
        Self { on_cancel: OnCancel::Refuses, ..Self::honest(A2aWire::V03) }
    }

    /// With another plan.
    #[must_use]
    pub fn plan(mut self, plan: impl IntoIterator<Item = WorkStep>) -> Self {
        self.plan = plan.into_iter().collect();
        self
    }

    /// With another answer to a stop.
    #[must_use]
    pub fn on_cancel(mut self, on_cancel: OnCancel) -> Self {
        self.on_cancel = on_cancel;
        self
    }

    /// Telling it in another way.
    #[must_use]
    pub fn tells(mut self, tells: Tells) -> Self {
        self.tells = tells;
        self
    }

    /// With something wrong with its streams.
    #[must_use]
    pub fn streams(mut self, streams: Streams) -> Self {
        self.streams = streams;
        self
    }

    /// With conversations that it names by itself.
    #[must_use]
    pub fn contexts(mut self, contexts: Contexts) -> Self {
        self.contexts = contexts;
        self
    }

    /// This many requests for a task get the answer to come again later.
    #[must_use]
    pub fn busy(mut self, looks: usize) -> Self {
        self.busy = looks;
        self
    }

    /// Answering in this way who looks at a task.
    #[must_use]
    pub fn looks(mut self, looks: Looks) -> Self {
        self.looks = looks;
        self
    }

    /// Cuts its streams, each after this number of events.
    #[must_use]
    pub fn cuts(mut self, cuts: impl IntoIterator<Item = usize>) -> Self {
        self.cuts = cuts.into_iter().collect();
        self
    }

    /// Repeats this many events on each renewed stream.
    #[must_use]
    pub fn repeats(mut self, events: usize) -> Self {
        self.repeats = events;
        self
    }

    /// Calling itself by this word, and refusing with it.
    #[must_use]
    pub fn word(mut self, word: impl Into<String>) -> Self {
        self.word = Some(word.into());
        self
    }

    /// With something wrong with its card.
    #[must_use]
    pub fn card(mut self, card: Card) -> Self {
        self.card = card;
        self
    }
}
