//! What an agent answers to each message, apart from the turn itself.

use serde_json::{Value, json};

use super::{
    AcpManners, AgentStart, Door, Keeps,
    say::{AcpStep, chunk, error, piece, result},
    turn::{self, AcpTurn},
};

/// An agent's mind.
#[derive(Debug)]
pub(super) struct Brain {
    pub(super) manners: AcpManners,
    is_known: bool,
    sessions: usize,
    pub(super) turn: Option<AcpTurn>,
}

const AUTH_REQUIRED: i64 = -32000;
const NO_METHOD: i64 = -32601;
const BAD_PARAMS: i64 = -32602;
const VERSION: u64 = 1;

impl Brain {
    pub(super) fn new(manners: AcpManners) -> Self {
        Self { is_known: manners.door == Door::Open, manners, sessions: 0, turn: None }
    }

    pub(super) fn hear(&mut self, message: &Value) -> Vec<AcpStep> {
        if self.manners.start == AgentStart::Hang {
            return Vec::new();
        }
        let (id, params) = (&message["id"], &message["params"]);
        let session = params["sessionId"].as_str().unwrap_or_default();
        match message["method"].as_str() {
            None => turn::answered(self, id, message),
            Some("initialize") => vec![result(id, self.initialized())],
            Some("authenticate") if params["methodId"] == "pass" => {
                self.is_known = true;
                vec![result(id, json!({}))]
            }
            Some("session/new" | "session/load" | "session/resume") if !self.is_known => {
                vec![error(id, AUTH_REQUIRED, "who are you?")]
            }
            Some("session/new") => self.new_session(id),
            Some("session/load") if matches!(self.manners.keeps, Keeps::Load | Keeps::OnlyLoad) => {
                self.reopen(id, session, true)
            }
            Some("session/resume") if self.manners.keeps == Keeps::Resume => self.reopen(id, session, false),
            Some("session/prompt") => turn::begin(self, id, session, params),
            Some("session/cancel") => turn::cancelled(self),
            Some(_) if id.is_null() => Vec::new(),
            Some(_) => vec![error(id, NO_METHOD, "there is no such method")],
        }
    }

    pub(super) fn end_of_input(&mut self) -> Vec<AcpStep> {
        turn::end_of_input(self)
    }

    fn initialized(&self) -> Value {
        let version = if self.manners.start == AgentStart::Newer { VERSION + 1 } else { VERSION };
        let sessions = match self.manners.keeps {
            Keeps::Resume | Keeps::OnlyLoad | Keeps::Neither => json!({"resume": {}}),
            Keeps::Nothing | Keeps::Load => json!({}),
        };
        let methods = match self.manners.door {
            Door::Open => json!([]),
            Door::Locked => json!([{"id": "pass", "name": "A word"}]),
        };
        json!({
            "protocolVersion": version,
            "agentCapabilities": {
                "loadSession": matches!(self.manners.keeps, Keeps::Load | Keeps::OnlyLoad | Keeps::Neither),
                "sessionCapabilities": sessions,
            },
            "agentInfo": {"name": "test-agent", "version": "1"},
            "authMethods": methods,
        })
    }

    fn new_session(&mut self, id: &Value) -> Vec<AcpStep> {
        self.sessions += 1;
        let session = format!("s{}-{}", std::process::id(), self.sessions);
        vec![result(id, json!({ "sessionId": session }))]
    }

    /// Continues a session of an earlier process; tells what was said in it, or does not.
    fn reopen(&self, id: &Value, session: &str, tells: bool) -> Vec<AcpStep> {
        let earlier = self.earlier(session);
        if earlier.is_empty() {
            return vec![error(id, BAD_PARAMS, "I do not know that session")];
        }
        if !tells {
            return vec![result(id, json!({}))];
        }
        let mut steps = Vec::new();
        for said in earlier {
            steps.push(piece(session, "user_message_chunk", &said));
            steps.push(chunk(session, "what I said before"));
        }
        steps.push(result(id, Value::Null));
        steps
    }

    /// What this session received, in this process or an earlier one with the same log.
    pub(super) fn earlier(&self, session: &str) -> Vec<String> {
        let Some(log) = &self.manners.log else { return Vec::new() };
        let prompts = super::read_log(log).into_iter().filter(|(_, got)| {
            got["method"] == "session/prompt" && got["params"]["sessionId"].as_str() == Some(session)
        });
        prompts.map(|(_, got)| turn::text_of(&got["params"])).collect()
    }
}
