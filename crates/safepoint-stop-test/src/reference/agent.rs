//! A loop around a model that can ask for commands and for the test's own tools.

use std::{
    env,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    process::{Command, Stdio},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::processes;

/// When a model that was busy is asked again.
const BUSY: Duration = Duration::from_secs(2);

/// The agent.
pub(crate) struct Agent {
    /// What it does. Held for one look or one change, also under `question`; no other lock is taken under it.
    working: Mutex<Working>,
    /// Signalled when a question is answered, and when a stop ends the turn that asked it.
    answered: Condvar,
    asks: bool,
    /// Held by the call that asks, so that one question is open at a time; what it does is locked under it.
    question: Mutex<()>,
}

/// What it does. Held for one look or one change.
#[derive(Default)]
struct Working {
    history: Vec<Value>,
    /// What is asked over the network now, by name.
    asked: Vec<(String, TcpStream)>,
    /// Counted up by each stop: what an earlier turn still does is none of its business any more.
    turn: u64,
    is_busy: bool,
    /// Whether a question waits for its answer.
    is_asking: bool,
}

/// What a stop makes of calls that have no result yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Each gets one.
    Whole,
    /// None does, and a provider refuses the history.
    WithoutResults,
}

/// One answer of the model.
#[derive(Default)]
struct ModelAnswer {
    text: String,
    calls: Vec<AskedCall>,
}

/// A call, as its pieces have come so far.
#[derive(Clone, Default)]
struct AskedCall {
    id: String,
    name: String,
    arguments: String,
}

impl Agent {
    /// One that asks before each command, or does not.
    pub(crate) fn new(asks: bool) -> Self {
        Self { working: Mutex::default(), answered: Condvar::new(), asks, question: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Working> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a new conversation.
    pub(crate) fn forget(&self) {
        self.lock().history.clear();
    }

    /// Begins a turn, which can be stopped from here on: its number.
    pub(crate) fn begin(&self, text: &str) -> u64 {
        let mut work = self.lock();
        work.history.push(json!({"role": "user", "content": text}));
        work.is_busy = true;
        work.turn
    }

    /// Does what is asked; whether that went well, and none if it was stopped.
    pub(crate) fn finish(&self, turn: u64) -> Option<bool> {
        let went = self.rounds(turn);
        let mut work = self.lock();
        if work.turn != turn {
            return None;
        }
        work.is_busy = false;
        Some(went.is_some())
    }

    /// Asks and runs until there is nothing to run; none if it was stopped, or could not.
    fn rounds(&self, turn: u64) -> Option<()> {
        loop {
            let answer = self.ask(turn)?;
            self.note(turn, answer.message())?;
            if answer.calls.is_empty() {
                return Some(());
            }
            let results: Vec<(String, String)> = thread::scope(|scope| {
                let run = |call: &AskedCall| (call.id.clone(), self.run(turn, call));
                let calls: Vec<_> = answer.calls.iter().map(|call| scope.spawn(move || run(call))).collect();
                calls.into_iter().filter_map(|call| call.join().ok()).collect()
            });
            for (id, output) in results {
                self.note(turn, json!({"role": "tool", "tool_call_id": id, "content": output}))?;
            }
        }
    }

    /// Adds this to the history, unless the turn was stopped.
    fn note(&self, turn: u64, message: Value) -> Option<()> {
        let mut work = self.lock();
        let is_current = work.turn == turn;
        is_current.then(|| work.history.push(message))
    }

    /// Asks the model; none if the answer was cut or refused.
    fn ask(&self, turn: u64) -> Option<ModelAnswer> {
        let base = env::var("OPENAI_BASE_URL").ok()?;
        let history = self.lock().history.clone();
        let connection = self.post(turn, ("model", &format!("{base}/chat/completions")), &request(history));
        let mut answer = ModelAnswer::default();
        for line in BufReader::new(connection.ok()?).lines().map_while(Result::ok) {
            match line.strip_prefix("data: ") {
                Some("[DONE]") => return Some(answer),
                Some(event) => answer.add(&serde_json::from_str(event).ok()?),
                None if line.starts_with("HTTP/1.1 429") => {
                    thread::sleep(BUSY);
                    return self.ask(turn);
                }
                // The rest only says why.
                None if line.starts_with("HTTP/1.1 4") => return None,
                None => {}
            }
        }
        None
    }

    /// Runs one call of a caller; its output, and none if it was stopped.
    pub(crate) fn called(&self, turn: u64, name: &str, arguments: &Value) -> Option<String> {
        let call =
            AskedCall { name: name.to_owned(), arguments: arguments.to_string(), ..AskedCall::default() };
        let output = self.run(turn, &call);
        (self.lock().turn == turn).then_some(output)
    }

    /// Asks the model for what no caller waits for.
    pub(crate) fn title(&self, turn: u64) {
        drop(self.ask(turn));
    }

    fn run(&self, turn: u64, call: &AskedCall) -> String {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        if call.name == "sh" {
            if self.asks && !self.is_allowed(turn) {
                return "not allowed".to_owned();
            }
            let line = arguments["command"].as_str().unwrap_or_default();
            let mut command = Command::new("/bin/sh");
            command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null());
            let ran = self.begins(turn, |_| command.spawn()).and_then(|mut child| child.wait());
            return ran.map_or_else(|error| error.to_string(), |status| status.to_string());
        }
        let tools = env::var("STOP_TEST_TOOLS").unwrap_or_default();
        let answered = self.post(turn, (&call.name, &format!("{tools}/{}", call.name)), &arguments).and_then(
            |mut answer| {
                let mut text = String::new();
                answer.read_to_string(&mut text).map(|_| text)
            },
        );
        answered.unwrap_or_else(|error| error.to_string())
    }

    /// Begins something that a stop can end, unless the turn was stopped: a stop that comes meanwhile waits, and finds it.
    fn begins<T>(&self, turn: u64, begin: impl FnOnce(&mut Working) -> io::Result<T>) -> io::Result<T> {
        let mut work = self.lock();
        if work.turn == turn { begin(&mut work) } else { Err(io::Error::other("the turn was stopped")) }
    }

    /// Asks a person, and waits for the answer or a stop; whether it may run.
    fn is_allowed(&self, turn: u64) -> bool {
        let _one = self.question.lock().unwrap_or_else(PoisonError::into_inner);
        let mut work = self.lock();
        if work.turn != turn {
            return false;
        }
        work.is_asking = true;
        println!("may it run?");
        let waits = |work: &mut Working| work.is_asking && work.turn == turn;
        let work = self.answered.wait_while(work, waits).unwrap_or_else(PoisonError::into_inner);
        work.turn == turn
    }

    /// Says yes to what is asked, if something is.
    pub(crate) fn allow(&self) -> bool {
        let was_asking = std::mem::take(&mut self.lock().is_asking);
        self.answered.notify_all();
        was_asking
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.lock().is_busy
    }

    /// What it said last.
    pub(crate) fn last_words(&self) -> String {
        let work = self.lock();
        work.history.last().and_then(|last| last["content"].as_str()).unwrap_or_default().to_owned()
    }

    /// Posts this, and keeps the connection at hand.
    fn post(&self, turn: u64, (name, url): (&str, &str), body: &Value) -> io::Result<TcpStream> {
        let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap_or((url, ""));
        let mut connection = TcpStream::connect(host)?;
        let kept = connection.try_clone()?;
        self.begins(turn, |work| {
            work.asked.push((name.to_owned(), kept));
            Ok(())
        })?;
        let body = body.to_string();
        let head = format!(
            "POST /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
        Ok(connection)
    }

    /// The turn is over, if there is one.
    pub(crate) fn settle(&self, how: Settled) -> bool {
        let mut work = self.lock();
        if !std::mem::take(&mut work.is_busy) {
            return false;
        }
        work.turn += 1;
        work.is_asking = false;
        self.answered.notify_all();
        let asked = work.history.last().map(|last| last["tool_calls"].clone()).unwrap_or_default();
        for call in asked.as_array().into_iter().flatten().filter(|_| how == Settled::Whole) {
            work.history.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "stopped"}));
        }
        true
    }

    /// Closes all connections and kills all that it has started.
    pub(crate) fn end_all(&self) {
        for (_, connection) in self.lock().asked.drain(..) {
            if connection.shutdown(Shutdown::Both).is_err() {
                // It is closed.
            }
        }
        processes::end_all();
    }

    /// What may still be under way, by names that a reader knows: processes by their numbers.
    pub(crate) fn names(&self) -> Vec<String> {
        let asked: Vec<String> = self.lock().asked.iter().map(|(name, _)| name.clone()).collect();
        asked.into_iter().chain(processes::below().into_iter().map(|pid| format!("process {pid}"))).collect()
    }
}

impl ModelAnswer {
    /// Adds a chunk of a stream.
    fn add(&mut self, chunk: &Value) {
        let delta = &chunk["choices"][0]["delta"];
        self.text.push_str(delta["content"].as_str().unwrap_or_default());
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            let place =
                piece["index"].as_u64().and_then(|place| usize::try_from(place).ok()).unwrap_or_default();
            if self.calls.len() <= place {
                self.calls.resize(place + 1, AskedCall::default());
            }
            let call = &mut self.calls[place];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            call.id.push_str(&text(&piece["id"]));
            call.name.push_str(&text(&piece["function"]["name"]));
            call.arguments.push_str(&text(&piece["function"]["arguments"]));
        }
    }

    fn message(&self) -> Value {
        if self.calls.is_empty() {
            return json!({"role": "assistant", "content": self.text});
        }
        let of = |call: &AskedCall| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        };
        let calls: Vec<Value> = self.calls.iter().map(of).collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }
}

fn request(history: Vec<Value>) -> Value {
    let tool = |name: &str, argument: &str| {
        let parameters = json!({"type": "object", "properties": {argument: {"type": "string"}}});
        json!({"type": "function", "function": {"name": name, "description": name, "parameters": parameters}})
    };
    let tools = [tool("sh", "command"), tool("work", "what"), tool("deaf", "what")];
    json!({"model": "reference", "stream": true, "messages": history, "tools": tools})
}
