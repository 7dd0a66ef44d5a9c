//! Stops of what a server has.
//!
//! **Invariants**: nothing is called stopped before the server says that its turn has settled.

use std::{ops::ControlFlow, time::Duration};

use futures_util::future::join;
use safepoint::raw::is_background_run;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::{
    client::{ApiAnswer, ApiRequest, ServerApi},
    failure::ApiError,
    items::{PAUSE, names, text},
    talk::TalkError,
};
use crate::{
    args::control::ScopeArg,
    control::{Afterwards, ModeArg, Replies, Reply, StopAsk, Wait},
    exit::{Usage, code},
};

/// How long one request waits for an end: what a server waits at most.
const WAIT: Duration = Duration::from_secs(120);

/// How a turn is that waits for a decision.
const SUSPENDED: &str = "suspended";

/// How a turn is that the end of the server's process has cut.
const CRASHED: &str = "crashed";

impl ServerApi {
    /// Stops one call, or the turn that runs or waits and then the session.
    ///
    /// The stop of the turn comes first, because its answer has the receipt; that of the session reaches a turn that is being
    /// planned meanwhile, and takes no further item.
    pub(super) async fn stop(
        &self,
        named: &str,
        ask: StopAsk,
        replies: &mut Replies<'_>,
    ) -> Result<Reply, TalkError> {
        can_be_asked(&ask).map_err(ApiError::Unusable)?;
        if let Some(call) = &ask.call {
            return Ok(self.stop_call(named, &ask, call).await?);
        }
        let (mut session, mut turn) = (named.to_owned(), None);
        if matches!(ask.mode, ModeArg::Now | ModeArg::Points(_)) {
            let body = body(&ask, json!({ "turn": null }), mode(&ask.mode));
            match self
                .of_session(named, async |session: &str| self.post_stop(session, &body, ask.wait).await)
                .await
            {
                Ok((id, answer)) => (session, turn) = (id, Some(answer.body)),
                Err(error) if error.code() == "no_active_turn" => {}
                Err(error) if error.may_be_done() => return self.after_doubt(named, &ask, error).await,
                Err(error) => return Err(error.into()),
            }
        }
        // The end of the turn that was reached is waited for; that of the session only where all of it shall be over.
        let wait = if turn.is_some() && ask.wait == Wait::Settled { Wait::No } else { ask.wait };
        let Some(turn) = turn else {
            return Ok(match self.stop_whole(&session, &ask, wait).await? {
                Some((session, whole)) => Reply { session, ..of_whole(&ask, &whole) },
                None => Reply { session: session.clone(), ..self.nothing_to_stop(&session) },
            });
        };
        // Together: what of the session outlives its turn is known while the session ends, and not after it.
        let of_turn = self.of_turn(&session, &ask, turn, replies);
        let (end, whole) = join(of_turn, self.stop_whole(&session, &ask, wait)).await;
        let reply = match (end?, whole) {
            (_, Err(error)) => half(&session, &error.reply(&self.name())),
            (ControlFlow::Break(reply), Ok(_)) => reply,
            (ControlFlow::Continue(turn), Ok(whole)) => ended(ask.wait, &turn, whole.map(|(_, whole)| whole)),
        };
        Ok(Reply { session, ..reply })
    }

    /// Stops the session, and asks until it is known what of it is alive, if that is waited for. `None`: the server does not have it
    /// open.
    async fn stop_whole(
        &self,
        named: &str,
        ask: &StopAsk,
        wait: Wait,
    ) -> Result<Option<(String, Value)>, ApiError> {
        let body = body(ask, json!("session"), of_session(ask));
        let mut whole = None;
        loop {
            let post = async |session: &str| self.post_stop(session, &body, wait).await;
            let (session, answer) = match self.of_session(named, post).await {
                Err(error) if error.code() == "no_active_turn" => return Ok(whole),
                answered => answered?,
            };
            let is_over = wait == Wait::No || !answer.body["quiet"].is_null();
            whole = Some((session, answer.body));
            if is_over || self.left(WAIT).is_zero() {
                return Ok(whole);
            }
        }
    }

    /// The server may have the stop of the turn or not: that of the session is asked all the same.
    async fn after_doubt(&self, named: &str, ask: &StopAsk, why: ApiError) -> Result<Reply, TalkError> {
        match self.stop_whole(named, ask, Wait::No).await {
            Ok(Some((session, _))) => Ok(half(&session, &why.reply(&self.name()))),
            Ok(None) | Err(_) => Err(why.into()),
        }
    }

    fn nothing_to_stop(&self, session: &str) -> Reply {
        let said = format!(
            "no turn of {session} runs or waits, and {} does not have it open: there is nothing to stop",
            self.name()
        );
        Reply::new(code::TOO_LATE, "no_active_turn", said)
    }

    async fn post_stop(&self, session: &str, body: &Value, wait: Wait) -> Result<ApiAnswer, ApiError> {
        let path = ["sessions", session, "stop"];
        let asked = ApiRequest::post(&path, body.clone()).in_spite_of_time();
        if wait == Wait::No {
            return self.send(asked).await;
        }
        let waits = self.left(WAIT);
        let ms = waits.as_millis().to_string();
        let query = [("wait", if wait == Wait::Quiet { "quiet" } else { "settled" }), ("timeout_ms", &*ms)];
        self.send(asked.query(&query).waits(waits)).await
    }

    async fn stop_call(&self, named: &str, ask: &StopAsk, call: &str) -> Result<Reply, ApiError> {
        let body = body(ask, json!({ "call": call }), mode(&ask.mode));
        match self
            .of_session(named, async |session: &str| self.post_stop(session, &body, Wait::No).await)
            .await
        {
            Ok((session, answer)) => Ok(Reply { session, ..requested(&answer.body, call) }),
            Err(error) if matches!(error.code(), "no_such_call" | "no_active_turn") => {
                let said = format!("call {call} not found: the server does not run it");
                Ok(Reply::new(code::NONE_SUCH, "no_such_call", said))
            }
            Err(error) => Err(error),
        }
    }

    /// The turn that the stop reached, once that is so which is waited for; else what is said instead.
    async fn of_turn(
        &self,
        session: &str,
        ask: &StopAsk,
        mut answer: Value,
        replies: &mut Replies<'_>,
    ) -> Result<ControlFlow<Reply, Value>, TalkError> {
        let turn = text(&answer["turn"]);
        if ask.wait == Wait::No {
            return Ok(ControlFlow::Break(requested(&answer, &turn)));
        }
        let mut is_shown = false;
        while !is_far_enough(ask.wait, &answer) {
            if !is_shown {
                let reply = Reply { session: session.to_owned(), last: false, ..requested(&answer, &turn) };
                replies.show(&reply).map_err(TalkError::Unshown)?;
                is_shown = true;
            }
            if self.left(WAIT).is_zero() {
                return Ok(ControlFlow::Break(Reply::timed_out().detail(json!({ "turn": turn }))));
            }
            sleep(self.left(PAUSE)).await;
            answer = match self.send(ApiRequest::get(&["sessions", session, "turns", &turn])).await {
                Ok(read) => read.body,
                Err(error) => return Ok(ControlFlow::Break(half(session, &error.reply(&self.name())))),
            };
        }
        answer["turn"] = json!(turn);
        Ok(ControlFlow::Continue(answer))
    }
}

/// # Errors
/// If a server cannot be asked this.
fn can_be_asked(ask: &StopAsk) -> Result<(), Usage> {
    let what = match ask {
        StopAsk { run: Some(_), .. } => "--run: it stops the turn that runs, or with --call one call",
        StopAsk { afterwards: Afterwards::Abandoned, .. } => "--abandon: a turn that it stops can be resumed",
        StopAsk { mode: ModeArg::WhenIdle { .. }, .. } => "--when-idle: it closes sessions at rest by itself",
        _ => return Ok(()),
    };
    Err(Usage(format!("a server takes no {what}")))
}

/// The stop that is asked; an empty field is left out.
fn body(ask: &StopAsk, what: Value, mode: String) -> Value {
    // A session's end at its turn's end has no grace: the stop of the turn has it.
    let within_ms = ask.within_ms.filter(|_| mode != "turn_end");
    let fields = [
        ("what", what),
        ("mode", json!(mode)),
        ("within_ms", json!(within_ms)),
        ("reach", json!(ask.scope)),
        ("cleanup_cap_ms", json!(ask.cleanup_cap_ms)),
        ("reason", json!(ask.because)),
    ];
    let said = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(Map::from_iter(said.map(|(name, value)| (name.to_owned(), value))))
}

fn mode(mode: &ModeArg) -> String {
    match mode {
        ModeArg::Now => "now".to_owned(),
        ModeArg::Points(points) => points.clone(),
        ModeArg::TurnEnd | ModeArg::WhenIdle { .. } => "turn_end".to_owned(),
    }
}

/// What the stop of the session is, beside that of its turn: as on this machine.
fn of_session(ask: &StopAsk) -> String {
    match &ask.mode {
        ModeArg::Now if ask.scope == ScopeArg::Tree => "now".to_owned(),
        ModeArg::Points(points) if ask.scope == ScopeArg::Tree && points == "any" => "any".to_owned(),
        _ => "turn_end".to_owned(),
    }
}

/// It is under way.
fn requested(answer: &Value, what: &str) -> Reply {
    let waits_for = names(&answer["waits_for"]);
    let until =
        if waits_for.is_empty() { String::new() } else { format!("; it waits for {}", waits_for.join(", ")) };
    let but = (answer["recorded"] == false && !answer["number"].is_null())
        .then(|| "the server's store did not take it, so it ends with the server".to_owned());
    Reply::new(code::ACCEPTED, "asked", format!("stop of {what} requested{until}")).but(but).detail(json!({
        "stop": answer["number"], "turn": answer["turn"], "state": answer["state"], "waits_for": answer["waits_for"],
    }))
}

fn is_cut(answer: &Value) -> bool {
    answer["state"] == CRASHED || answer["outcome"] == CRASHED
}

fn is_far_enough(wait: Wait, answer: &Value) -> bool {
    // It has no end that could be waited for.
    if is_cut(answer) {
        return true;
    }
    // The receipt of a turn that waits for a decision is older than the stop: its outcome says when the stop has settled it.
    let is_over = answer["outcome"].as_str().is_some_and(|outcome| outcome != SUSPENDED);
    if wait != Wait::No && answer["receipt"]["ending"] == SUSPENDED && !is_over {
        return false;
    }
    match wait {
        Wait::No => true,
        Wait::Settled => !answer["receipt"].is_null(),
        Wait::Quiet => !answer["quiet"].is_null(),
    }
}

/// The turn has settled. It says quiet only where the server does (S3.6), of the turn and of the session that it has open.
fn ended(wait: Wait, answer: &Value, whole: Option<Value>) -> Reply {
    let turn = text(&answer["turn"]);
    if is_cut(answer) {
        let said =
            format!("{turn} was cut by the end of the server's process: it is not known what of it is alive");
        return Reply::new(code::OTHER, "unknown", said).detail(json!({ "turn": turn }));
    }
    let ending = answer["receipt"]["ending"].as_str();
    let is_interrupted = answer["outcome"] == "interrupted";
    let said = match ending {
        Some(_) if is_interrupted => format!("{turn} is stopped"),
        Some("stopped") => format!("{turn} is stopped"),
        Some(ending) => format!("{turn} has ended: {ending}"),
        None => format!("{turn} has ended"),
    };
    let mut survivors = names(&answer["survivors"]);
    if let Some(whole) = whole.filter(|_| wait == Wait::Quiet) {
        if whole["quiet"].is_null() {
            return Reply::timed_out().detail(json!({ "turn": turn }));
        }
        // The session's answer is the later one, and names the background runs of every turn.
        survivors.retain(|name| !is_background_run(name));
        survivors.extend(names(&whole["survivors"]));
    }
    with_survivors(wait, said, &survivors).detail(json!({
        "turn": turn, "survivors": survivors, "receipt": answer["receipt"],
    }))
}

fn with_survivors(wait: Wait, said: String, survivors: &[String]) -> Reply {
    if !survivors.is_empty() {
        let (number, status) =
            if wait == Wait::Quiet { (code::OTHER, "not_quiet") } else { (code::ACCEPTED, "settled") };
        return Reply::new(number, status, format!("{said}; may still be running: {}", survivors.join(", ")));
    }
    Reply::new(code::ACCEPTED, if wait == Wait::Quiet { "quiet" } else { "settled" }, said)
}

/// No turn was reached; the session is stopped.
fn of_whole(ask: &StopAsk, answer: &Value) -> Reply {
    if ask.wait == Wait::No {
        return requested(answer, answer["turn"].as_str().unwrap_or("the session"));
    }
    if answer["quiet"].is_null() {
        return Reply::timed_out();
    }
    let survivors = names(&answer["survivors"]);
    let said = "stopped: the server has closed it".to_owned();
    with_survivors(ask.wait, said, &survivors).detail(json!({ "survivors": survivors }))
}

/// The stop is under way, and the rest is not known.
fn half(session: &str, why: &Reply) -> Reply {
    let message = format!("stop requested; but {}", why.message);
    Reply { session: session.to_owned(), message, ..why.clone() }
}
