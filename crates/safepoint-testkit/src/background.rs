//! Providers of responses in the background: honest ones, and such as only say that they cancelled; for
//! testing what is said of work that others do.
//!
//! What a provider *says* of a response and what becomes of the *work* behind it are two things here:
//! [`Provider::look`] (as a [`Probe`]) is the work's account.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    backend_suite::{Account, Probe},
    http::{self, Connection, Request, Serving, response},
    sync::{lock, until},
    tool_gate::ToolGate,
};

/// What a provider does when it is asked to cancel. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnProviderCancel {
    /// It ends the work, and then says so.
    #[default]
    Ends,
    /// It says so, and works on.
    Says,
    /// It answers with the response as it is, and works on.
    Nods,
    /// It has no such address.
    Missing,
    /// It answers with an error, but calls the response cancelled, while the work continues.
    RefusesAndSays,
    /// It calls the response completed, and works on.
    ClaimsAnEnd,
    /// It answers with another response, which is cancelled, while the work continues.
    SaysOfAnother,
    /// It hangs up, and works on.
    HangsUp,
    /// It never answers.
    Deaf,
}

/// How a released response ends. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// With an answer: `done N`, for its Nth response.
    #[default]
    Answered,
    /// Failed.
    Failed,
    /// Cut by its length.
    Cut,
    /// The provider does not keep it: later requests do not find it.
    Forgotten,
}

/// What is wrong with the answer to the request that begins a response. Exhaustive: the test chooses one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begins {
    /// Nothing.
    #[default]
    Well,
    /// It is this HTTP status; from 500 on the work has begun by then.
    Status(u16),
    /// It is no JSON, and the work has begun.
    Garbage,
    /// It does not come before the test has the provider [name](Provider::name) the response, and the work
    /// has begun.
    NamedLate,
}

/// How a provider behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProviderManners {
    /// What it does when it is asked to cancel.
    pub on_cancel: OnProviderCancel,
    /// How a response ends that is let on.
    pub ends: Ends,
    /// What is wrong with the answer to the request that begins one.
    pub begins: Begins,
    /// How many requests for a response get 429 (come again later) before the provider shows it.
    pub busy: usize,
}

/// A provider that listens until it is dropped.
#[derive(Debug)]
pub struct Provider {
    url: String,
    mind: Arc<Mind>,
    _serving: Serving,
}

/// What its connections share.
#[derive(Debug, Default)]
struct Mind {
    manners: ProviderManners,
    /// Of these four locks a thread holds one at a time, for one entry or one look.
    requests: Mutex<Vec<Value>>,
    /// As `requests`.
    bearers: Mutex<Vec<String>>,
    /// Each stands at its number, from 1.
    responses: Mutex<Vec<Arc<Response>>>,
    /// As `requests`.
    account: Mutex<Account>,
    looks: AtomicUsize,
    gate: ToolGate,
    names: ToolGate,
}

/// One response.
#[derive(Debug)]
struct Response {
    number: usize,
    /// What is said of it.
    status: watch::Sender<&'static str>,
    torn: watch::Sender<bool>,
    over: watch::Sender<bool>,
}

const JSON: &str = "application/json";
const ANSWERED: &str = "completed";
/// From this status on the work has begun when a request is answered with it.
const BEGUN: u16 = 500;

impl Provider {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// If there is no port.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(manners: ProviderManners) -> io::Result<Self> {
        let listener = http::bind(http::LOOPBACK)?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let mind = Arc::new(Mind { manners, ..Mind::default() });
        let serving = Serving::start(listener, &mind, serve);
        Ok(Self { url, mind, _serving: serving })
    }

    /// Where it is: the part before `/responses`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The bodies of the requests that began a response.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        lock(&self.mind.requests).clone()
    }

    /// The `authorization` of each request that had one.
    #[must_use]
    pub fn bearers(&self) -> Vec<String> {
        lock(&self.mind.bearers).clone()
    }

    /// Answers those who began a response, where that [comes late](Begins::NamedLate).
    pub fn name(&self) {
        self.mind.names.open_for_all();
    }

    /// The gate of its works: each comes to it, and ends when it is let on.
    #[must_use]
    pub fn gate(&self) -> &ToolGate {
        &self.mind.gate
    }
}

impl Probe for Provider {
    fn look(&self) -> BoxFuture<'_, Account> {
        Box::pin(std::future::ready(*lock(&self.mind.account)))
    }

    fn finish(&self) {
        self.mind.gate.open_for_all();
    }
}

async fn serve(mut connection: Connection, mind: Arc<Mind>) -> io::Result<()> {
    while let Some(request) = connection.request().await? {
        lock(&mind.bearers).extend(request.header("authorization").map(ToOwned::to_owned));
        let Request { method, path, body, .. } = request;
        let about = path.strip_prefix("/v1/responses").unwrap_or_default().trim_start_matches('/');
        let (id, what) = about.split_once('/').unwrap_or((about, ""));
        if let Some(odd) = mind.odd_response(&method, id, &body) {
            connection.write(&odd).await?;
            continue;
        }
        let answer = match (method.as_str(), id, what) {
            ("POST", "", "") => {
                let begun = mind.begin(&body);
                if mind.manners.begins == Begins::NamedLate {
                    mind.names.pass().await;
                }
                Some(begun)
            }
            ("GET", id, "") => {
                mind.find(id).filter(|_| !mind.has_forgotten(id)).map(|response| mind.show(&response))
            }
            ("POST", id, "cancel") => match (mind.find(id), mind.manners.on_cancel) {
                (Some(response), OnProviderCancel::RefusesAndSays) => {
                    mind.cancel(&response, OnProviderCancel::Says).await;
                    let error = json!({"error": {"message": "Cannot cancel a background response."}});
                    connection.write(&plain("400 Bad Request", &error)).await?;
                    continue;
                }
                (_, OnProviderCancel::HangsUp) => {
                    // Before the line is cut, which the test sees.
                    lock(&mind.account).stops += 1;
                    return Ok(());
                }
                (_, OnProviderCancel::Deaf) => {
                    lock(&mind.account).stops += 1;
                    connection.closed().await;
                    return Ok(());
                }
                (Some(response), on_cancel) => mind.cancel(&response, on_cancel).await,
                (None, _) => None,
            },
            _ => None,
        };
        match answer {
            Some(value) => connection.write(&plain("200 OK", &value)).await?,
            None => {
                let message = format!("Response with id '{id}' not found.");
                connection.write(&plain("404 Not Found", &json!({"error": {"message": message}}))).await?;
            }
        }
    }
    Ok(())
}

fn plain(status: &str, value: &Value) -> Vec<u8> {
    response::whole(status, JSON, &[], value.to_string().as_bytes())
}

impl Mind {
    /// A response without a result, where the provider gives one instead of an answer.
    fn odd_response(self: &Arc<Self>, method: &str, id: &str, body: &[u8]) -> Option<Vec<u8>> {
        match (method, id, self.manners.begins) {
            ("POST", "", Begins::Status(status)) => {
                if status >= BEGUN {
                    self.begin(body);
                }
                Some(plain(&format!("{status} Odd"), &Value::Null))
            }
            ("POST", "", Begins::Garbage) => {
                self.begin(body);
                Some(plain("200 OK", &Value::Null))
            }
            // SeqCst for simplicity. One update, so exactly the first `busy` looks are refused.
            ("GET", ..) if self.looks.fetch_add(1, Ordering::SeqCst) < self.manners.busy => {
                Some(response::whole("429 Too Many Requests", JSON, &[("retry-after", "0")], b"null"))
            }
            _ => None,
        }
    }

    fn begin(self: &Arc<Self>, body: &[u8]) -> Value {
        lock(&self.requests).push(serde_json::from_slice(body).unwrap_or_default());
        {
            let mut account = lock(&self.account);
            account.begun += 1;
            account.in_flight += 1;
        }
        let (status, torn) = (watch::Sender::new("queued"), watch::Sender::new(false));
        let mut responses = lock(&self.responses);
        // Numbered under the lock: of two at once each stands at its number.
        let number = responses.len() + 1;
        let response = Arc::new(Response { number, status, torn, over: watch::Sender::new(false) });
        responses.push(Arc::clone(&response));
        drop(responses);
        let shown = self.show(&response);
        let mind = Arc::clone(self);
        tokio::spawn(async move {
            let mut torn = response.torn.subscribe();
            tokio::select! {
                biased;
                // First: work that was torn down does not end by itself. What loses is the work itself, where it waits.
                _torn = torn.wait_for(|torn| *torn) => {}
                () = mind.gate.pass() => {
                    let ends = match mind.manners.ends {
                        Ends::Answered | Ends::Forgotten => ANSWERED,
                        Ends::Failed => "failed",
                        Ends::Cut => "incomplete",
                    };
                    response.status.send_if_modified(|status| {
                        let is_open = *status != "cancelled";
                        *status = if is_open { ends } else { *status };
                        is_open
                    });
                }
            }
            // Before `over`: who waits for the end of the work finds it counted out.
            lock(&mind.account).in_flight -= 1;
            response.over.send_replace(true);
        });
        shown
    }

    fn find(&self, id: &str) -> Option<Arc<Response>> {
        let number: usize = id.strip_prefix("resp_")?.parse().ok()?;
        lock(&self.responses).get(number.checked_sub(1)?).cloned()
    }

    fn has_forgotten(&self, id: &str) -> bool {
        let is_over = self.find(id).is_some_and(|response| *response.status.borrow() == ANSWERED);
        self.manners.ends == Ends::Forgotten && is_over
    }

    fn show(&self, response: &Response) -> Value {
        let status = *response.status.borrow();
        let text = format!("done {}", response.number);
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        let output =
            if status == ANSWERED { json!([{"type": "message", "content": content}]) } else { json!([]) };
        let mut value = json!({"id": format!("resp_{}", response.number), "object": "response", "status": status,
            "background": true, "output": output, "error": null, "incomplete_details": null});
        match status {
            "failed" => value["error"] = json!({"code": "server_error", "message": "out of otters"}),
            "incomplete" => value["incomplete_details"] = json!({"reason": "max_output_tokens"}),
            _ => {}
        }
        value
    }

    async fn cancel(&self, response: &Response, on_cancel: OnProviderCancel) -> Option<Value> {
        if matches!(*response.status.borrow(), "completed" | "failed" | "incomplete") {
            return Some(self.show(response));
        }
        // Before its effect, which a test may wait for.
        lock(&self.account).stops += 1;
        match on_cancel {
            OnProviderCancel::Ends => {
                response.torn.send_replace(true);
                until(&response.over, |over| *over).await;
                response.status.send_replace("cancelled");
            }
            OnProviderCancel::Says => drop(response.status.send_replace("cancelled")),
            OnProviderCancel::ClaimsAnEnd => drop(response.status.send_replace(ANSWERED)),
            OnProviderCancel::SaysOfAnother => {
                return Some(
                    json!({"id": "resp_of_another", "object": "response", "status": "cancelled", "output": []}),
                );
            }
            OnProviderCancel::Nods | OnProviderCancel::RefusesAndSays => {}
            OnProviderCancel::HangsUp | OnProviderCancel::Deaf => {}
            OnProviderCancel::Missing => return None,
        }
        Some(self.show(response))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use super::*;

    /// Responses that begin at once are found by their own ids.
    #[tokio::test]
    async fn responses_that_begin_at_once_are_found_by_their_ids() {
        const AT_ONCE: usize = 4;
        let (mind, all) = (Arc::new(Mind::default()), Barrier::new(AT_ONCE));
        let runtime = tokio::runtime::Handle::current();
        thread::scope(|threads| {
            for _ in 0..AT_ONCE {
                let (mind, all, runtime) = (Arc::clone(&mind), &all, runtime.clone());
                threads.spawn(move || {
                    let _inside = runtime.enter();
                    all.wait();
                    (0..500).for_each(|_| drop(mind.begin(b"{}")));
                });
            }
        });
        for number in 1..=AT_ONCE * 500 {
            assert_eq!(mind.find(&format!("resp_{number}")).unwrap().number, number);
        }
    }
}
