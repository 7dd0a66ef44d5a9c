//! One request on one connection, and what became of it.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use rmcp::{
    Peer, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
        ClientRequest, GetMeta as _, JsonObject, ListToolsRequest, PaginatedRequestParams, RequestId,
        ServerResult,
    },
    service::{PeerRequestOptions, RequestHandle, ServiceError},
};
use safepoint::raw::trace;

use super::{
    address,
    http::{self, Sent},
    notices::{Notices, Sink},
    own,
};

/// A connection that can be used.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) peer: Peer<RoleClient>,
    pub(super) notices: Notices,
    pub(super) farewells: Farewells,
    /// Which connection to this server it is: the first, the second, …
    pub(super) number: u64,
}

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Fault {
    /// It was not sent.
    NotSent(String),
    /// It was refused for who asks; nothing was done.
    Unauthorized,
    /// The server says that it failed, in these words.
    Refused(String),
    /// It answered, but not so that there is a result; what was done is not known.
    Answered {
        /// What our end says of that.
        ours: String,
        /// What the server said, if anything.
        theirs: String,
    },
    /// The answer did not come to its end; what was done is not known.
    Cut,
    /// The connection was lost before an answer; what was done is not known.
    Lost(String),
}

impl Live {
    /// Calls a tool.
    ///
    /// # Cancel safety
    /// The server gets a notice that the request is abandoned, and its answer is thrown away.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        sink: &Sink,
    ) -> Result<ServerResult, Fault> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut call = CallToolRequest::new(params);
        call.extensions.insert(sink.clone());
        let mut request = ClientRequest::CallToolRequest(call);
        if let Some(traced) = trace::current() {
            let meta = &mut request.get_meta_mut().0;
            meta.set_traceparent(traced.traceparent());
            traced.tracestate().into_iter().for_each(|state| meta.set_tracestate(state));
        }
        let result = self.ask(request, Some(sink)).await;
        result.map_err(|error| fault(&error, !sink.was_handed_over()))
    }

    /// One page of the list of tools.
    ///
    /// # Cancel safety
    /// As [`Live::call`].
    pub(super) async fn list(&self, cursor: Option<String>) -> Result<ServerResult, Fault> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let list = ListToolsRequest { method: Default::default(), params, extensions: Default::default() };
        let result = self.ask(ClientRequest::ListToolsRequest(list), None).await;
        result.map_err(|error| fault(&error, false))
    }

    async fn ask(&self, request: ClientRequest, sink: Option<&Sink>) -> Result<ServerResult, ServiceError> {
        let options = PeerRequestOptions::no_options();
        let handle = self.peer.send_cancellable_request(request, options).await?;
        let mut abandoned = Abandoned { live: self, of: Some(handle.id.clone()), sink };
        let token = handle.progress_token.clone();
        let answer = RequestHandle::await_response(handle).await;
        self.notices.forget(&token);
        abandoned.of = None;
        answer
    }
}

/// Sends the server a notice that the request is abandoned, if dropped before the answer.
struct Abandoned<'a> {
    live: &'a Live,
    of: Option<RequestId>,
    sink: Option<&'a Sink>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let Some(id) = self.of.take() else { return };
        if let Some(sink) = self.sink {
            // Reported before it is registered: an end is reported after it. An answer that came a moment before is
            // thrown away and not reported: the receipt then says less than is so, never more.
            sink.abandoned();
            self.live.notices.abandon(id.clone(), sink.clone());
        }
        let why = "nobody waits for it any more".to_owned();
        let notification = CancelledNotification::new(CancelledNotificationParam::new(Some(id), Some(why)));
        let peer = self.live.peer.clone();
        let send = async move {
            if peer.send_notification(notification.into()).await.is_err() {
                // The connection is gone. The server is gone too, or sees that.
            }
        };
        // Without the budget of the task, which may be spent just now.
        self.live.farewells.begin(tokio::task::unconstrained(send).boxed());
    }
}

/// Messages to the server that no caller waits for, and over which no connection should be closed.
#[derive(Clone, Default)]
pub(super) struct Farewells {
    /// Held to poll what is open, once and without waiting: that puts messages into the queue of the connection, and
    /// comes back to no lock of ours. It is not held across an await. What begins after `sent` took the rest ends with
    /// the connection.
    open: Arc<Mutex<Vec<BoxFuture<'static, ()>>>>,
}

impl Farewells {
    /// Polls it once, which puts it into the connection's queue.
    fn begin(&self, mut farewell: BoxFuture<'static, ()>) {
        let is_open = |farewell: &mut BoxFuture<'static, ()>| farewell.now_or_never().is_none();
        if is_open(&mut farewell) {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain_mut(is_open);
            open.push(farewell);
        }
    }

    /// Waits until all are sent.
    pub(super) async fn sent(&self) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        join_all(open).await;
    }
}

fn fault(error: &ServiceError, never_handed_over: bool) -> Fault {
    match error {
        ServiceError::McpError(error) if own::is_ours(error) => {
            Fault::Answered { ours: error.message.to_string(), theirs: String::new() }
        }
        ServiceError::McpError(error) => Fault::Refused(error.message.to_string()),
        ServiceError::TransportClosed if never_handed_over => {
            Fault::NotSent("the connection was lost".to_owned())
        }
        ServiceError::TransportClosed => Fault::Cut,
        ServiceError::TransportSend(error) => {
            let inner = error.error.as_ref();
            match http::was_sent(inner) {
                Some(Sent::Unauthorized) => Fault::Unauthorized,
                Some(Sent::Answered { ours, theirs }) => Fault::Answered { ours, theirs },
                Some(Sent::Perhaps) => Fault::Lost(http::in_full(inner)),
                // Over pipes: a line that could not be written whole has not been read as one.
                Some(Sent::No) | None => Fault::NotSent(http::in_full(inner)),
            }
        }
        other => Fault::Lost(address::scrubbed(&other.to_string())),
    }
}
