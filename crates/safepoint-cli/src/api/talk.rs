//! One talk with a session: on a server where one is named, else with its owner or its store on this machine.

use std::process::ExitCode;

use tokio::time::Instant;

use super::{client::ServerApi, failure::ApiError};
use crate::{
    args::control::Common,
    control::{self, Ask, Replies, Reply},
    exit,
};

/// Asks, and shows each reply; the exit code is the last one's.
///
/// # Errors
/// If it cannot be asked, or shown.
///
/// # Cancel safety
/// It may have been done.
pub(crate) async fn talk(common: &Common, ask: anyhow::Result<Ask>) -> anyhow::Result<ExitCode> {
    let mut replies = Replies::new(&common.place, &common.session);
    let meant = ServerApi::meant(&common.server, common.place.store.as_ref());
    let asked = match meant {
        Ok(None) => return control::talk(common, ask).await,
        Ok(Some(server)) => ask.map(|ask| (server, ask)),
        Err(error) => Err(error),
    };
    let (server, ask) = match asked {
        Ok(asked) => asked,
        Err(error) if common.place.json => return replies.last(&Reply::failed(&error)),
        Err(error) => return Err(error),
    };
    let server = server.until(common.timeout.map(|timeout| Instant::now() + timeout));
    let reply = match server.ask(common, ask, &mut replies).await {
        Ok(reply) => reply,
        Err(TalkError::Unanswered(why)) => why.reply(&server.name()),
        Err(TalkError::Unshown(error)) => return Err(error),
    };
    replies.last(&reply)
}

/// How a talk ends early. Exhaustive: without an answer, or without a reader.
pub(super) enum TalkError {
    Unanswered(ApiError),
    Unshown(anyhow::Error),
}

impl From<ApiError> for TalkError {
    fn from(error: ApiError) -> Self {
        Self::Unanswered(error)
    }
}

impl ServerApi {
    async fn ask(&self, common: &Common, ask: Ask, replies: &mut Replies<'_>) -> Result<Reply, TalkError> {
        match ask {
            Ask::Push(push) => self.push(&common.session, push, replies).await,
            Ask::Withdraw { item } => Ok(self.withdraw(&common.session, &item).await?),
            Ask::Stop(stop) => self.stop(&common.session, stop, replies).await,
            Ask::Show | Ask::Look => Ok(Reply::new(exit::code::ACCEPTED, "looked", String::new())),
        }
    }
}
