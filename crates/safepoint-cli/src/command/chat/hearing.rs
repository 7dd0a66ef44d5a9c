//! Events of the session, as the screen takes them.

use std::time::Instant;

use safepoint::{event::Event, session::SessionEvent};

use super::driver::Driver;
use crate::render::chat::{
    events::ChatEvent,
    queue::{Origin, PushKind, Pushed},
};

impl Driver {
    pub(super) fn hear(&mut self, event: Event<SessionEvent>) {
        let received = match event.kind {
            SessionEvent::Accepted(id) => {
                let item = self.host.pushed(id).unwrap_or_else(|| {
                    self.look_at_waiting();
                    Pushed { text: String::new(), how: PushKind::Queue, origin: Origin::Elsewhere }
                });
                ChatEvent::Accepted { id, item }
            }
            SessionEvent::TurnStarted { items, .. } => ChatEvent::Started(items),
            _ => ChatEvent::Event(event),
        };
        let acts = self.state.hear(received, Instant::now());
        self.act(acts);
    }
}
