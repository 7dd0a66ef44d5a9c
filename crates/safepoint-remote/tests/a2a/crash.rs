//! The process dies while a peer works: the next one asks for the work by its name, and begins nothing twice.

use std::sync::Arc;

use safepoint::{
    Agent,
    event::{EventKind, Fact},
    ids::SessionId,
    session::{Chat, Fate, Session, SessionEvent},
    store::{Life, MemoryStore, Outside, Owner, Store},
};
use safepoint_testkit::{
    a2a::{A2aServer, Manners, Tells, Wire},
    store_suite::{Lives, Time, outside},
};

use super::world::{peer, server};

struct World {
    store: Arc<dyn Store>,
    lives: Lives,
}

impl World {
    fn new() -> Self {
        let lives = Lives::default();
        let clock = Outside::default().clock;
        let store = MemoryStore::new(Outside { clock, ..outside(&Time::default(), &lives) });
        Self { store: Arc::new(store), lives }
    }

    async fn open(&self, pid: u32, server: &A2aServer) -> Session<String> {
        let owner = Owner { pid, ..Owner::here() };
        let builder = Session::builder(Chat::new(Agent::over(peer(server)).build()));
        builder.open(Arc::clone(&self.store), SessionId::from("s"), owner).await.unwrap()
    }
}

async fn seen(session: &Session<String>, wanted: impl Fn(&SessionEvent) -> bool) {
    let mut events = session.events();
    while let Some(event) = events.next().await {
        if wanted(&event.kind) {
            return;
        }
    }
    panic!("the session ended before what was waited for");
}

fn is_named(event: &SessionEvent) -> bool {
    let SessionEvent::Run { event, .. } = event else { return false };
    matches!(&event.kind, EventKind::Fact(fact) if matches!(&**fact, Fact::CallNamed { .. }))
}

/// S7.2, S7.3, S10.3 / T10: the message is not sent again, and the answer that the peer comes to is the turn's.
#[tokio::test]
async fn work_that_outlives_the_process_is_asked_for_by_its_name() {
    for tells in [Tells::Task, Tells::Looks] {
        let world = World::new();
        let server = server(Manners::honest(Wire::V1).tells(tells));
        let dead = world.open(1, &server).await;
        drop(dead.push("do it".to_owned()).unwrap());
        seen(&dead, is_named).await;
        server.came(1).await;
        world.lives.say(1, Life::Dead);

        let next = world.open(2, &server).await;
        assert!(next.resume().await);
        server.let_on();
        seen(&next, |event| matches!(event, SessionEvent::TurnEnded { fate: Fate::Completed(_), .. })).await;
        assert_eq!(server.begun(), 1, "one task, begun once");
        assert_eq!(server.asked("SendStreamingMessage") + server.asked("SendMessage"), 1);
        assert_eq!(server.deeds(), ["began", "said half", "said  done", "ended"]);
    }
}
