//! What takes sessions as a program does: it opens them on the node, and they end when they are idle.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt as _};
use safepoint::{
    Session,
    session::{ChatPlanner, Node, SessionStop},
    store::Error,
};
use safepoint_nodes::{TakeResult, Taker, Wake};

use super::{dice::Dice, judge::Judge, link::NodeLink, payer::agent};

/// How long a session is idle before it is given back.
const IDLE: Duration = Duration::from_millis(200);

/// What takes sessions on one node.
pub(super) struct SessionOwner {
    node: Arc<Node>,
    link: Arc<NodeLink>,
    judge: Arc<Judge>,
    dice: Arc<Dice>,
    longest: Duration,
}

impl SessionOwner {
    pub(super) fn new(
        node: Arc<Node>,
        (link, judge, dice): (Arc<NodeLink>, Arc<Judge>, Arc<Dice>),
        longest: Duration,
    ) -> Self {
        Self { node, link, judge, dice, longest }
    }
}

impl Taker for SessionOwner {
    fn take(&self, wake: Wake) -> BoxFuture<'_, TakeResult> {
        async move {
            let node: Weak<Node> = Arc::downgrade(&self.node);
            let left = move || node.upgrade().map(|node| node.left()).unwrap_or_default();
            let parts = (&self.link, &self.judge, &self.dice);
            let planner = ChatPlanner::new(agent(&wake.session, parts, self.longest, left));
            let builder = Session::builder(planner).only_existing();
            let opened = builder.open_on(&self.node, wake.session.clone()).await;
            let how = opened.as_ref().map_or_else(ToString::to_string, |_| String::new());
            self.judge.saw("opened", format_args!("{} {} {how}", wake.session, self.link.number));
            let session: Session<String> = match opened {
                Ok(session) => session,
                Err(Error::Held(..) | Error::NoSession(_)) => return TakeResult::Elsewhere,
                Err(Error::Parked(..)) => return TakeResult::Parked,
                Err(Error::Draining(_) | Error::Buried(_) | Error::NodeLapsed(_)) => {
                    return TakeResult::NoRoom;
                }
                Err(_) => return TakeResult::Lost,
            };
            drop(session.stop(SessionStop::when_idle_for(IDLE)));
            let exit = session.done().await;
            self.judge.saw("ended", format_args!("{} {:?}", wake.session, exit.reason()));
            TakeResult::Released
        }
        .boxed()
    }
}
