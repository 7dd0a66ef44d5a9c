//! `safepoint --resume`: the list of conversations before any of them is open.

use std::{path::Path, sync::Arc, time::Duration, time::Instant};

use crossterm::event::{Event as Key, EventStream, KeyEventKind};
use futures_util::StreamExt as _;
use safepoint::{ids::SessionId, store::Store};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval},
};

use super::{conversations, keeping, looking, paint};
use crate::{
    args::run::OnDisconnect,
    render::chat::{
        attention::Attention,
        picker::Picked,
        sessions::{Looked, SessionPicker},
        surface::{Pane, Surface},
        terminal::{self, Terminal},
    },
    signals::Signals,
};

const TICK: Duration = Duration::from_millis(200);

/// The conversation that the person chooses; none if they close the list, or a signal does.
///
/// # Errors
/// If there is none, or the store or the terminal cannot be used.
pub(super) async fn choose(store: &Arc<dyn Store>, project: &Path) -> anyhow::Result<Option<SessionId>> {
    let all = keeping::offered(Some(store), None, None).await?;
    if all.is_empty() {
        anyhow::bail!("no stored conversation yet");
    }
    let mut list =
        SessionPicker::new(all.iter().map(|(one, _)| conversations::offer(one, project)).collect());
    let (tell, mut looked) = mpsc::unbounded_channel();
    let looking = tokio::spawn(looking::look(all, move |some| tell.send(some).is_ok()));
    let chosen = shown(&mut list, &mut looked).await;
    looking.abort();
    chosen
}

async fn shown(
    list: &mut SessionPicker,
    looked: &mut mpsc::UnboundedReceiver<Vec<Looked>>,
) -> anyhow::Result<Option<SessionId>> {
    let mut surface = Surface::new(paint(), terminal::size());
    let terminal = Terminal::enter(&Attention::default())?;
    let mut signals = Signals::listen(OnDisconnect::Stop)?;
    let mut keys = EventStream::new();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let chosen = loop {
        draw(list, &mut surface, &terminal);
        let picked = tokio::select! {
            biased;
            // The list is closed: losing it loses nothing.
            _ = signals.received() => Picked::Closed,
            // Losing this one loses nothing: a key stays in the stream.
            key = keys.next() => match key {
                Some(Ok(Key::Key(key))) if key.kind != KeyEventKind::Release => list.key(key),
                Some(Ok(Key::Paste(text))) => {
                    list.paste(&text);
                    Picked::Nothing
                }
                Some(Ok(_)) => Picked::Nothing,
                None | Some(Err(_)) => Picked::Closed,
            },
            // Losing this one loses nothing: what was found stays in the channel.
            Some(some) = looked.recv() => {
                list.looked(some);
                Picked::Nothing
            }
            // Losing these loses nothing: the screen is looked at again in any case.
            () = terminal.written() => Picked::Nothing,
            _ = ticks.tick() => Picked::Nothing,
        };
        match picked {
            Picked::Nothing => {}
            Picked::Closed => break None,
            Picked::Chosen(id) => break Some(SessionId::from(id)),
        }
    };
    terminal.leave(surface.frame(&[], Pane::default()));
    Ok(chosen)
}

fn draw(list: &SessionPicker, surface: &mut Surface, terminal: &Terminal) {
    if !terminal.is_free() {
        return;
    }
    let size = terminal::size();
    if !surface.is_for(size) {
        surface.resize(size, Instant::now());
    }
    if !surface.is_steady(Instant::now()) {
        return;
    }
    let pane = list.pane(surface.rows(), surface.columns());
    if let Some(frame) = surface.frame(&[], pane) {
        terminal.write(frame);
    }
}
