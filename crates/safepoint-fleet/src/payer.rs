//! The agent of a simulated session: it calls its tool once for each number that it is given, and says that it has.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, History, Model, ToolContext,
    approval::ApprovalMode,
    history::Message,
    ids::{CallId, SessionId},
    message::ToolCall,
    model::{Conversation, Delta, DeltaStream, Finish, ModelError, ModelSpec, Parameters},
    session::OnRestart,
    stop::Failure,
    tool,
};
use serde_json::json;

use super::{
    dice::Dice,
    effect::{Effect, EffectOf},
    judge::Judge,
    link::NodeLink,
};

/// The tool.
const PAY: &str = "pay";
/// What it is for.
const ITEM: &str = "item";
/// How long the model takes before it says anything.
const THINKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(400));

/// The model, in every session alike.
#[derive(Clone, Debug)]
struct PayModel(Arc<Dice>);

impl Model for PayModel {
    fn name(&self) -> &str {
        "pays"
    }

    fn accepts(&self, _spec: &ModelSpec) -> Result<(), ModelError> {
        Ok(())
    }

    fn open(&self, _spec: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }

    fn check(&self, _: &Parameters) -> Result<(), ModelError> {
        Ok(())
    }
}

impl Conversation for PayModel {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let mut deltas = vec![Delta::Sent, Delta::Opened];
        match history.entries().iter().next_back().map(|entry| Message::clone(entry)) {
            Some(Message::User(message)) => deltas.extend(message.text.split_whitespace().filter_map(call)),
            _ => deltas.push(Delta::Text("It is paid.".into())),
        }
        if deltas.len() == 2 {
            deltas.push(Delta::Text("There is nothing to pay.".into()));
        }
        deltas.push(Delta::Ended(Finish::Natural));
        let thinks = self.0.time(THINKS);
        let steps = stream::iter(deltas.into_iter().map(Ok));
        stream::once(tokio::time::sleep(thinks)).flat_map(move |()| steps.clone()).boxed()
    }
}

fn call(text: &str) -> Option<Delta> {
    let item: u64 = text.parse().ok()?;
    let (id, args) = (CallId::fresh(), json!({ ITEM: item }).to_string());
    Some(Delta::CallReady(ToolCall { id, name: PAY.into(), args }))
}

/// The agent of this session on this node.
pub(super) fn agent(
    session: &SessionId,
    (link, judge, dice): (&Arc<NodeLink>, &Arc<Judge>, &Arc<Dice>),
    longest: Duration,
    left: impl Fn() -> Duration + Send + Sync + 'static,
) -> Agent {
    let model = PayModel(Arc::clone(dice));
    let (session, link, judge, dice, left) =
        (session.clone(), Arc::clone(link), Arc::clone(judge), Arc::clone(dice), Arc::new(left));
    let pay = tool::from_fn(PAY, "pays", move |_cx: ToolContext, args: BTreeMap<String, u64>| {
        let (session, link, judge, dice, left) =
            (session.clone(), Arc::clone(&link), Arc::clone(&judge), Arc::clone(&dice), Arc::clone(&left));
        async move {
            let lease = link.lease().ok_or_else(|| Failure::new("there is no lease"))?;
            let epoch = judge.epoch_of(&session, lease.id());
            let item = args.get(ITEM).copied().unwrap_or_default();
            let takes = dice.time((Duration::from_millis(10), longest));
            let of = EffectOf { session, item, epoch, lease };
            let mut effect = Effect::begin(&judge, &link.machine(), of, (&dice, left(), takes));
            if effect.is_done().await {
                Ok("paid")
            } else {
                Err(Failure::new("its process was killed").into())
            }
        }
    });
    Agent::builder(model).approvals(ApprovalMode::Auto).on_restart(OnRestart::Resume).tool(pay).build()
}
