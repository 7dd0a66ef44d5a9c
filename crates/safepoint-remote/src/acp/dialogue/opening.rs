//! The way to the prompt: the handshake, the login, and a session that is new or found again.

use safepoint::{raw::remote::RemoteEvent, stop::Failure};
use serde_json::{Value, json};

use super::{
    super::{
        message::{self, AUTH_REQUIRED, Refusal},
        update::shown,
    },
    Act, Dialogue, How, Stage, earlier,
};

/// The supported version of the protocol.
const VERSION: u64 = 1;

impl Dialogue {
    /// The first words, in a conversation that was this session of the agent's so far. We offer neither files nor
    /// terminals.
    pub(in super::super) fn begin(&mut self, earlier: Option<String>) -> Vec<Act> {
        self.earlier = earlier;
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": "safepoint", "title": "Safepoint", "version": env!("CARGO_PKG_VERSION") },
        });
        vec![self.ask(Stage::Initialize, "initialize", &params)]
    }

    fn ask(&mut self, stage: Stage, method: &str, params: &Value) -> Act {
        self.stage = stage;
        self.number += 1;
        Act::Send(message::question(self.number, method, params))
    }

    pub(super) fn initialized(&mut self, agent: Value) -> Vec<Act> {
        self.agent = agent;
        let version = &self.agent["protocolVersion"];
        if *version != VERSION {
            return self.never(&format!("speaks version {version} of the protocol, not {VERSION}"), None);
        }
        let Some(method) = self.setting.method.clone() else { return self.open_session() };
        if !self.methods().contains(&method) {
            let known = self.methods().join(", ");
            return self.never(&format!("knows no way `{method}` to say who asks; it knows: {known}"), None);
        }
        vec![self.ask(Stage::Authenticate, "authenticate", &json!({ "methodId": method }))]
    }

    /// The login methods to try.
    fn methods(&self) -> Vec<String> {
        let methods = self.agent["authMethods"].as_array().into_iter().flatten();
        methods.filter_map(|method| method["id"].as_str().map(str::to_owned)).collect()
    }

    /// Continues in the conversation's session, where the agent can; else in a new one.
    pub(super) fn open_session(&mut self) -> Vec<Act> {
        let resumes = !self.agent["agentCapabilities"]["sessionCapabilities"]["resume"].is_null();
        match (&self.earlier, resumes, self.loads()) {
            (None, ..) => vec![self.new_session()],
            (Some(_), true, _) => vec![self.resume(How::Resume)],
            (Some(_), false, true) => vec![self.resume(How::Load)],
            (Some(_), false, false) => self.forgotten("this agent cannot resume its sessions"),
        }
    }

    pub(super) fn loads(&self) -> bool {
        self.agent["agentCapabilities"]["loadSession"] == true
    }

    pub(super) fn resume(&mut self, how: How) -> Act {
        let method = match how {
            How::Resume => "session/resume",
            How::Load | How::New => "session/load",
        };
        let session = self.earlier.clone().unwrap_or_default();
        let params = json!({ "sessionId": session, "cwd": self.setting.folder, "mcpServers": [] });
        self.session = session;
        self.ask(Stage::Session(how), method, &params)
    }

    fn new_session(&mut self) -> Act {
        let params = json!({ "cwd": self.setting.folder, "mcpServers": [] });
        self.ask(Stage::Session(How::New), "session/new", &params)
    }

    /// The agent no longer has the session.
    pub(super) fn begin_anew(&mut self, refusal: &Refusal) -> Vec<Act> {
        self.forgotten(&format!("the agent cannot resume its session ({})", shown(&refusal.message)))
    }

    /// A new session: the prompt carries the earlier messages, as far as they are known here.
    fn forgotten(&mut self, why: &str) -> Vec<Act> {
        self.has_forgotten = true;
        let then = match self.brief.earlier.is_empty() {
            true => "it knows nothing of what was said before",
            false => "it knows of what was said before only what is sent along now",
        };
        vec![Act::Tell(RemoteEvent::Notice(format!("{why}: {then}"))), self.new_session()]
    }

    pub(super) fn made(&mut self, made: &Value) -> Vec<Act> {
        let Some(session) = made["sessionId"].as_str() else {
            return self.never("made a session without a name", None);
        };
        session.clone_into(&mut self.session);
        self.prompt()
    }

    pub(super) fn prompt(&mut self) -> Vec<Act> {
        let before = self.has_forgotten.then(|| earlier::quoted(&self.brief.earlier)).flatten();
        let texts = before.iter().chain([&self.brief.text]);
        let blocks: Vec<Value> = texts.map(|text| json!({ "type": "text", "text": text })).collect();
        let params = json!({ "sessionId": self.session, "prompt": blocks });
        let task = self.session.clone();
        // The session is noted before the prompt is sent, so that lost work can still be found.
        vec![
            Act::Note(task.clone()),
            Act::Tell(RemoteEvent::Begun { task }),
            self.ask(Stage::Prompt, "session/prompt", &params),
        ]
    }

    pub(super) fn refused(&mut self, refusal: &Refusal) -> Vec<Act> {
        let Refusal { code, message } = refusal;
        if *code != AUTH_REQUIRED {
            return self.never(&format!("could not be talked to: {} ({code})", shown(message)), None);
        }
        let known = self.methods().join(", ");
        let hint = format!(
            "log in by the agent's own means, or name one of its ways (`Acp::authenticate`): {known}"
        );
        self.never(&format!("wants to know who asks: {}", shown(message)), Some(hint))
    }

    /// No work was requested of the agent.
    fn never(&mut self, what: &str, hint: Option<String>) -> Vec<Act> {
        self.stage = Stage::Over;
        let failure = Failure::new(format!("the agent {what}")).unreachable();
        let failure = match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        };
        vec![Act::Tell(RemoteEvent::Failed(failure))]
    }
}
