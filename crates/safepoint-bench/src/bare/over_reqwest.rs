//! The bare loop over `reqwest`: one client that all agents share.

use bytes::Bytes;
use reqwest::{
    Client, Url,
    header::{AUTHORIZATION, CONTENT_TYPE},
};

use super::{Events, Transport, reply::BareReply};

#[derive(Clone)]
pub(crate) struct ReqwestLoop {
    client: Client,
    url: Url,
}

impl ReqwestLoop {
    /// For a base URL such as `http://127.0.0.1:8080/v1`.
    pub(crate) fn to(url: &str) -> anyhow::Result<Self> {
        Ok(Self { client: Client::builder().build()?, url: format!("{url}/chat/completions").parse()? })
    }
}

impl Transport for ReqwestLoop {
    async fn exchange(&mut self, body: Bytes) -> anyhow::Result<BareReply> {
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        let sent = request.header(AUTHORIZATION, "Bearer key").body(body).send().await?;
        let mut response = sent.error_for_status()?;
        let mut events = Events::default();
        while let Some(piece) = response.chunk().await? {
            events.take(&piece)?;
        }
        Ok(events.reply)
    }
}
