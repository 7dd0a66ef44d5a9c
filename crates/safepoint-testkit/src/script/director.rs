//! Which reply is due: those with conditions first, then the others in order, then the fallback.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::Asked;
use super::{Fallback, Reply, Script, practice};

/// A script while it is played.
#[derive(Debug)]
pub(crate) struct Director {
    script: Script,
    conditional: Vec<usize>,
    plain: Vec<usize>,
    used: AtomicUsize,
}

/// What is said.
pub(crate) enum Chosen<'s> {
    /// A reply of the script, and its place in it.
    Scripted(usize, &'s Reply),
    /// The fallback's.
    Improvised(Box<Reply>),
}

impl Director {
    pub(crate) fn new(script: Script) -> Self {
        let (conditional, plain) =
            (0..script.replies.len()).partition(|place| script.replies[*place].when.is_some());
        Self { script, conditional, plain, used: AtomicUsize::new(0) }
    }

    /// Whether no request, whatever it says, changes what is said.
    pub(crate) fn is_blind(&self) -> bool {
        self.conditional.is_empty() && self.script.repeat && !self.plain.is_empty()
    }

    pub(crate) fn choose(&self, asked: &Asked) -> Chosen<'_> {
        let replies = &self.script.replies;
        let fits = |place: &&usize| replies[**place].when.as_ref().is_some_and(|when| when.fits(asked));
        if let Some(place) = self.conditional.iter().find(fits) {
            return Chosen::Scripted(*place, &replies[*place]);
        }
        // Relaxed: one update gives each request its own turn. Which of two requests at once is first is
        // open.
        let turn = self.used.fetch_add(1, Ordering::Relaxed);
        let turn = if self.script.repeat && !self.plain.is_empty() { turn % self.plain.len() } else { turn };
        match self.plain.get(turn) {
            Some(place) => Chosen::Scripted(*place, &replies[*place]),
            None => Chosen::Improvised(Box::new(match self.script.fallback {
                Fallback::Echo => Reply::text(echo(asked)),
                Fallback::Practice => practice::reply(asked),
            })),
        }
    }
}

fn echo(asked: &Asked) -> String {
    match asked.results.as_slice() {
        [] => format!("You said: {}", asked.user),
        results => format!("I have {} results.", results.len()),
    }
}
