//! The replies of one command, as they are shown.

use std::process::ExitCode;

use super::{client::details, protocol::Reply};
use crate::{
    args::store::StoreArgs,
    exit::{self, code},
    output,
    render::reply_json::ReplyLines,
};

/// Shows the replies of one command: as text, or as lines of JSON.
pub(crate) struct Replies<'a> {
    place: &'a StoreArgs,
    /// The session as it was named, for replies that name none; empty: the command is about none.
    session: &'a str,
    lines: ReplyLines,
}

impl<'a> Replies<'a> {
    pub(crate) fn new(place: &'a StoreArgs, session: &'a str) -> Self {
        Self { place, session, lines: ReplyLines::default() }
    }

    /// Shows the last one; the exit code is its code.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(crate) fn last(&mut self, reply: &Reply) -> anyhow::Result<ExitCode> {
        self.show(reply)?;
        Ok(exit::with(reply.code))
    }

    /// Shows one.
    ///
    /// # Errors
    /// If stdout does not take it.
    pub(crate) fn show(&mut self, reply: &Reply) -> anyhow::Result<()> {
        if self.place.json {
            let session = if reply.session.is_empty() { self.session } else { &reply.session };
            self.lines.say("reply", Some(session).filter(|named| !named.is_empty()), reply.fields())?;
            return Ok(());
        }
        let message = &reply.message;
        if reply.code == code::ACCEPTED {
            output::say(message)?;
            details(&reply.detail).iter().try_for_each(|line| output::say(format_args!("  {line}")))?;
        } else {
            output::tell(format_args!("safepoint: {message}"));
        }
        Ok(())
    }
}
