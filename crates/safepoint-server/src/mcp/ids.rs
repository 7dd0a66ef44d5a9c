//! A connection whose requests have each its own id: another one with the id of one that waits is refused, and is not handed on.

use futures_core::future::BoxFuture;
use rmcp::{
    RoleServer,
    model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::json;

use super::asked::{AskedIds, IN_USE, IN_USE_DETAIL};

/// Such a connection.
pub(super) struct OwnIds<T> {
    inner: T,
    asked: AskedIds,
    /// What is still to be written of a refusal: a reader that is dropped cuts none.
    refusal: Option<BoxFuture<'static, ()>>,
}

impl<T: Transport<RoleServer>> OwnIds<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, asked: AskedIds::default(), refusal: None }
    }

    /// Refuses the request of this id. The refusal names no request: its client would take it for the answer to the other one.
    fn refuse(&mut self, id: &RequestId) {
        let error = ErrorData::invalid_request(IN_USE_DETAIL, Some(json!({"code": IN_USE, "id": id})));
        let refused = self.inner.send(TxJsonRpcMessage::<RoleServer>::error(error, None));
        // A client that has gone reads none.
        self.refusal = Some(Box::pin(async move { drop(refused.await) }));
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for OwnIds<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match &item {
            JsonRpcMessage::Response(answer) => self.asked.end(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.iter().for_each(|id| self.asked.end(id)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                refusal.await;
                self.refusal = None;
            }
            let message = self.inner.receive().await?;
            match &message {
                JsonRpcMessage::Request(request) if !self.asked.begin(request.id.clone()) => {
                    self.refuse(&request.id);
                    continue;
                }
                JsonRpcMessage::Notification(notice) => {
                    if let ClientNotification::CancelledNotification(cancel) = &notice.notification
                        && let Some(cancelled) = &cancel.params.request_id
                    {
                        self.asked.cancel(cancelled);
                    }
                }
                JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
