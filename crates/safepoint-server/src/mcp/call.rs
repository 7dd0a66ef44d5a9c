//! One call: its item is pushed and followed until it rests, and the answer says how it ended.

use std::{pin::pin, time::Duration};

use futures_util::future::{Either, select};
use rmcp::{
    RoleServer,
    model::{CallToolRequestParams, CallToolResponse, InputRequiredResult, ProtocolVersion},
    service::{Peer, RequestContext},
};
use safepoint::{
    approval::ApprovalRequest,
    session::{Policy, QueueAfterStop},
};
use serde_json::{Value, json};
use tokio::{sync::watch, time::timeout};

use super::{
    answers::{self, TakenAnswers},
    link::LinkState,
    loss::{Loss, Losses},
    progress::{self, Progress},
    question::{self, Given},
    reply, task,
    tool::AgentTool,
};
use crate::{
    access::AccessScope,
    answer::{ItemAnswer, ItemState},
    caller::{Caller, KeptItem, SessionMake, decisions::is_over, items::ItemPush},
    follow::{ItemEvent, ItemEvents, SuspendedEvent, SuspendedItem},
    problem::{Answered, Problem},
    routes::table::Refuses,
};

/// How long the last notices may take to be written before the answer.
const LAST_NOTICES: Duration = Duration::from_secs(1);

/// What becomes of a question. Exhaustive: it ends the call, the client is asked while the call waits, or the client is asked by the
/// answer and calls again.
enum Asks {
    No,
    Now(Peer<RoleServer>),
    ByAnswer,
}

/// A call whose item is recorded. Dropped before that rests, it is lost.
struct OpenCall {
    by: Caller,
    call: KeptItem,
    link: watch::Sender<LinkState>,
    asks: Asks,
    is_over: bool,
}

/// How a call ended. Exhaustive: its item rests, or the client is asked first.
enum CallEnd {
    Rest(ItemAnswer),
    Asked(Vec<ApprovalRequest>),
}

/// Answers a call.
///
/// # Errors
/// Why it is refused.
///
/// # Cancel safety
/// It is lost: its item is stopped, where its client has no other end.
pub(super) async fn answer(
    tool: &AgentTool,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Answered<CallToolResponse> {
    let by = tool.caller(context);
    let asks = Asks::of(&by, context);
    let is_task = context.client_capabilities().is_some_and(|client| client.supports_tasks());
    let (mut open, events) = match &request.request_state {
        Some(named) => {
            let call = KeptItem::find(&by, &tool.agent, named).await?;
            let given = request.input_responses.clone().unwrap_or_default();
            // First: without a reader nothing is decided.
            let events = ItemEvents::of(&by, &call.kept, call.number).await?;
            let mut open = OpenCall { by, call, link: tool.link.clone(), asks, is_over: true };
            if let TakenAnswers::LeftOpen = answers::decide(&open.by, &open.call, &given).await? {
                let rest = open.call.item(&open.by).await?;
                return open.result(rest).await;
            }
            open.is_over = false;
            (open, events)
        }
        None => {
            by.needs(AccessScope::Talk, Refuses::UnderLoad)?;
            let arguments = Value::Object(request.arguments.unwrap_or_default());
            let (call, events) = push(&by, &tool.agent, &arguments).await?;
            if is_task {
                return Ok(task::begun(&by, &call).await?.into());
            }
            (OpenCall { by, call, link: tool.link.clone(), asks, is_over: false }, events)
        }
    };
    let (progress, said) = Progress::new();
    let client = context.meta.get_progress_token().map(|token| (context.peer.clone(), token));
    let losses = Losses::of(context, &tool.link);
    let end = {
        let (follow, tell) =
            (pin!(open.follow(events, progress, losses)), pin!(progress::tell(client, said)));
        // The end of the call first; where the notices have ended before, there are none, or the client is gone.
        match select(follow, tell).await {
            Either::Left((end, tell)) => {
                // A client that does not read them gets the answer all the same.
                drop(timeout(LAST_NOTICES, tell).await);
                end
            }
            Either::Right(((), follow)) => follow.await,
        }
    };
    open.is_over = true;
    match end? {
        CallEnd::Rest(rest) => open.result(rest).await,
        CallEnd::Asked(questions) => {
            let requests = question::forms(&questions)?;
            Ok(InputRequiredResult::new(Some(requests), Some(open.call.name().to_string())).into())
        }
    }
}

async fn push(by: &Caller, agent: &str, arguments: &Value) -> Answered<(KeptItem, ItemEvents)> {
    let known = ["text", "session"];
    let unknown =
        arguments.as_object().and_then(|given| given.keys().find(|name| !known.contains(&name.as_str())));
    if let Some(name) = unknown {
        return Err(Problem::bad_request(format!("`{name}` is no argument of this tool")));
    }
    let text = arguments["text"].as_str().ok_or_else(|| Problem::bad_request("`text` is missing"))?;
    let item = ItemPush { text: text.to_owned(), policy: Policy::Enqueue, key: None };
    // First: what is no item opens no session.
    drop(item.encoded()?);
    let kept = match &arguments["session"] {
        Value::Null => {
            by.make(SessionMake { agent: Some(agent.to_owned()), ..SessionMake::default() }).await?.0
        }
        Value::String(session) => {
            let kept = by.session(session).await?;
            if kept.setup.agent != agent {
                return Err(Problem::no_such("session"));
            }
            kept
        }
        _ => return Err(Problem::bad_request("`session` is a text")),
    };
    let owner = by.owner(&kept).await?;
    let (number, events) = ItemEvents::push(by, &kept, &owner, &item).await?;
    Ok((KeptItem { kept, number }, events))
}

impl Asks {
    fn of(by: &Caller, context: &RequestContext<RoleServer>) -> Self {
        let fills_in = context.client_capabilities().is_some_and(|client| question::fills_in(&client));
        if !fills_in || !by.who.may(AccessScope::Approve) {
            return Self::No;
        }
        let version = context.protocol_version();
        match version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()) {
            true => Self::ByAnswer,
            false => Self::Now(context.peer.clone()),
        }
    }
}

impl OpenCall {
    /// Follows its item until it rests, or the client is to be asked.
    async fn follow(
        &self,
        mut events: ItemEvents,
        mut progress: Progress,
        mut losses: Losses,
    ) -> Answered<CallEnd> {
        // The last record that was read: where the events are read again, what came before is not shown again.
        let mut read = None;
        loop {
            // First: what happened. A loss stops the item, and the events are read on: what was not read is read next.
            let event = match select(pin!(events.next()), pin!(losses.next())).await {
                Either::Left((event, _)) => event?,
                Either::Right((loss, _)) => {
                    progress.end();
                    self.lost(loss).await?;
                    continue;
                }
            };
            match event {
                ItemEvent::Shown(event) if event.position.is_some() && event.position <= read => {}
                ItemEvent::Shown(event) => {
                    read = event.position.or(read);
                    progress.show(&event);
                }
                ItemEvent::KeepAlive => {}
                ItemEvent::Rest(rest) if rest.outcome == Some("suspended") && !losses.is_over() => {
                    if !self.ask(&mut losses).await? {
                        let questions = self.by.questions(self.call.kept.id()).await?;
                        return Ok(match self.asks {
                            Asks::ByAnswer if !questions.is_empty() => CallEnd::Asked(questions),
                            _ => CallEnd::Rest(rest),
                        });
                    }
                    events = self.again().await?;
                }
                ItemEvent::Rest(rest) if rest.state == ItemState::Rest => return Ok(CallEnd::Rest(rest)),
                // It was suspended, and has continued since.
                ItemEvent::Rest(_) => events = self.again().await?,
                ItemEvent::Bye => return Err(Problem::draining()),
            }
        }
    }

    async fn again(&self) -> Answered<ItemEvents> {
        ItemEvents::of(&self.by, &self.call.kept, self.call.number).await
    }

    /// Asks what is open, one question after the other, and returns whether the turn continues.
    async fn ask(&self, losses: &mut Losses) -> Answered<bool> {
        let Asks::Now(peer) = &self.asks else { return Ok(false) };
        let (by, kept) = (&self.by, &self.call.kept);
        let mut waits = SuspendedItem::of(by, kept, self.call.number).await?;
        loop {
            let open = by.questions(kept.id()).await?;
            waits.shows(&open);
            let Some(asked) = open.into_iter().next() else { break };
            let form = question::form(&asked)?;
            let over = pin!(async {
                let awake = async {
                    loop {
                        match waits.next().await? {
                            // Decided elsewhere, or withdrawn.
                            SuspendedEvent::Awake => return Ok::<_, Problem>(()),
                            SuspendedEvent::KeepAlive => {}
                            SuspendedEvent::Bye => return Err(Problem::draining()),
                        }
                    }
                };
                // Whichever it is: the other is looked for again where the call continues.
                match select(pin!(awake), pin!(losses.next())).await {
                    Either::Left((awake, _)) => awake.map(|()| None),
                    Either::Right((loss, _)) => Ok(Some(loss)),
                }
            });
            // First: what the client says. The other: the question is over without it, and is taken back as it is dropped.
            let given = match select(pin!(peer.create_elicitation(form)), over).await {
                Either::Left((Ok(answer), _)) => Given::of(&json!(answer)).unwrap_or(Given::Nothing),
                Either::Left((Err(_), _)) => Given::Nothing,
                Either::Right((over, _)) => {
                    return match over? {
                        // Open questions stay open when the client leaves; one that is cancelled is stopped.
                        Some(Loss::Closed | Loss::Lost) => Ok(false),
                        Some(loss) => self.lost(loss).await.map(|()| true),
                        None => Ok(true),
                    };
                }
            };
            let Given::Decision(decision) = given else { return Ok(false) };
            match by.decide(kept, asked.id.as_str(), asked.digest, &decision).await {
                Ok(_) => {}
                Err(problem) if is_over(&problem) => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(true)
    }

    /// Does what the loss asks for. The item is waited for all the same, unless the client has detached.
    async fn lost(&self, loss: Loss) -> Answered<()> {
        let Some(request) = loss.stop(self.by.who.name()) else {
            let detail = "the connection of the client ended; its call runs on";
            return Err(Problem::conflict("detached", detail));
        };
        let (kept, number) = (&self.call.kept, self.call.number);
        if self.by.stop_item(kept, number, request, QueueAfterStop::Continues).await.is_err() {
            // It is over, or the store does not answer: the end of the call says how it ended.
        }
        Ok(())
    }

    /// The answer of a call whose item rests.
    async fn result(&self, rest: ItemAnswer) -> Answered<CallToolResponse> {
        let questions = match rest.outcome {
            Some("suspended") => self.by.questions(self.call.kept.id()).await?,
            _ => Vec::new(),
        };
        let ended = self.by.ended(&self.call.kept, rest).await?;
        Ok(reply::of(&ended, &questions).into())
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        // What is lost here has no client any more: a connection that is open ends with it, and a session of HTTP is a detach.
        let loss = match *self.link.borrow() {
            LinkState::Single => Loss::Disconnected,
            LinkState::Open | LinkState::Closed => Loss::Closed,
            LinkState::Lost => Loss::Lost,
        };
        let Some(request) = loss.stop(self.by.who.name()).filter(|_| !self.is_over) else { return };
        let (by, call) = (self.by.clone(), self.call.clone());
        self.by.host.spawn("stop of a lost call", async move {
            if by.stop_item(&call.kept, call.number, request, QueueAfterStop::Continues).await.is_err() {
                // It is over.
            }
        });
    }
}
