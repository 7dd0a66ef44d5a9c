//! A transport that is listened to: notices are taken out on the way in, in their order, and calls are noted on the way
//! out, before they are sent.

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientRequest, GetMeta as _, ServerJsonRpcMessage, ServerNotification},
    transport::Transport,
};
use tokio::sync::watch;

use super::notices::{Notices, Sink};

/// Any transport.
pub(super) struct Watched<T> {
    pub(super) inner: T,
    pub(super) notices: Notices,
    /// Counts how often the server said that its tools changed.
    pub(super) changes: watch::Sender<u64>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(request) = &item
            && let ClientRequest::CallToolRequest(call) = &request.request
            && let Some(sink) = call.extensions.get::<Sink>()
            && let Some(token) = request.request.get_meta().get_progress_token()
        {
            self.notices.hand_over(token, sink);
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            let notification = match &message {
                ServerJsonRpcMessage::Notification(notification) => notification,
                ServerJsonRpcMessage::Response(response) => {
                    self.notices.answered(&response.id, "a result");
                    return Some(message);
                }
                ServerJsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        self.notices.answered(id, "an error");
                    }
                    return Some(message);
                }
                ServerJsonRpcMessage::Request(_) => return Some(message),
            };
            match &notification.notification {
                ServerNotification::ProgressNotification(progress) => self.notices.tell(&progress.params),
                ServerNotification::ToolListChangedNotification(_) => {
                    self.changes.send_modify(|count| *count += 1);
                }
                // What a server logs or changes elsewhere is nothing to us, and may come in floods.
                ServerNotification::LoggingMessageNotification(_)
                | ServerNotification::ResourceUpdatedNotification(_)
                | ServerNotification::ResourceListChangedNotification(_)
                | ServerNotification::PromptListChangedNotification(_)
                | ServerNotification::TaskStatusNotification(_)
                | ServerNotification::CustomNotification(_) => {}
                _ => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
