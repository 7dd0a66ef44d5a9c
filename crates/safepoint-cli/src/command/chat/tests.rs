//! A signal while the chat's own thread is busy.

use std::{sync::mpsc, time::Duration};

use rustix::process::{self, getpid, kill_process};
use safepoint::{Agent, Session, session::ChatPlanner};
use safepoint_testkit::{script::Script, scripted::ScriptedModel};
use safepoint_tools::process::Processes;
use tokio::runtime::Runtime;

use crate::{
    args::run::OnDisconnect,
    command::chat::{driver::Driver, lent::Lent},
    signals::{Answered, ONE_AT_A_TIME, Signal, Signals, StopLevel},
};

/// S12.5: a signal ends the session while the loop that draws it does not come to hear it: the thread that would waits here for
/// the session's end.
#[test]
fn a_signal_ends_the_session_while_the_loop_is_busy() {
    const PATIENCE: Duration = Duration::from_secs(20);
    let _alone = ONE_AT_A_TIME.blocking_lock();
    let runtime = Runtime::new().unwrap();
    let _inside = runtime.enter();
    let mut signals = Signals::listen(OnDisconnect::Stop).unwrap();
    let agent = Agent::builder(ScriptedModel::new(Script::of([]))).build();
    let session = Session::<String>::builder(ChatPlanner::new(agent)).start();
    let _answers = Driver::answers(&signals, &session.handle(), &Processes::new("run_1"), &Lent::default());
    let (tell, ended) = mpsc::channel();
    let handle = session.handle();
    runtime.spawn(async move {
        handle.done().await;
        tell.send(()).unwrap();
    });
    kill_process(getpid(), process::Signal::HUP).unwrap();
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(()), "nothing asked it to end");
    let received = signals.received_already().unwrap();
    assert_eq!((received.got, received.answered), (Signal::Hangup, Answered::With(Some(StopLevel::Now))));
}
