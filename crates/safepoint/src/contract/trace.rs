//! Traces that span processes: where a run hangs in one, and what a request takes along (S11.14).
//!
//! **Invariants**: the engine knows spans and no exporter; what joins the two is installed once for the process, and what it
//! does never ends a run.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use tracing::{Span, span::Id};

use crate::sync::{Mutex, callback};

/// The length of a `traceparent` of the version that this release writes.
const LENGTH: usize = 55;
/// The most bytes of a `tracestate` that is taken along.
const MOST_STATE: usize = 512;

/// A span of any process, as W3C Trace Context names it.
///
/// ```
/// use safepoint::raw::trace::TraceContext;
/// let above = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
/// assert!(above.is_some());
/// assert!(TraceContext::parse("00-00000000000000000000000000000000-b7ad6b7169203331-01").is_none());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TraceContext {
    parent: Arc<str>,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// Reads a `traceparent`; `None` if it is none. Of a later version what this release knows is read.
    #[must_use]
    pub fn parse(traceparent: &str) -> Option<Self> {
        let text = traceparent.trim();
        let (head, rest) = (text.get(..LENGTH)?, text.get(LENGTH..)?);
        let mut parts = head.split('-');
        let version = hex(parts.next()?, 2)?;
        let (trace, span, flags) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?, hex(parts.next()?, 2)?);
        let is_whole =
            if version == "00" { rest.is_empty() } else { rest.is_empty() || rest.starts_with('-') };
        let names_both = [trace, span].iter().all(|id| id.bytes().any(|digit| digit != b'0'));
        let is_known = is_whole && names_both && version != "ff" && parts.next().is_none();
        is_known.then(|| Self { parent: format!("00-{trace}-{span}-{flags}").into(), state: None })
    }

    /// Adds the `tracestate` beside it, which is passed on as it is. One that is blank, too long or holds what no header does
    /// is left out.
    #[must_use]
    pub fn with_state(mut self, tracestate: &str) -> Self {
        let text = tracestate.trim();
        let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        self.state = (!text.is_empty() && text.len() <= MOST_STATE && is_plain).then(|| text.into());
        self
    }

    /// The value of the header `traceparent`, and of that key in the `_meta` of MCP.
    #[must_use]
    pub fn traceparent(&self) -> &str {
        &self.parent
    }

    /// The value of the header `tracestate`.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Both headers, by their names.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("traceparent", Some(self.traceparent())), ("tracestate", self.tracestate())]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parent)
    }
}

/// `text`, if it is that many lowercase hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<&str> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (text.len() == digits && is_hex).then_some(text)
}

/// Joins the engine's spans with the traces of an exporter. None of its methods may block.
///
/// A program has one, as it has one subscriber; the one for OpenTelemetry is a few lines over `tracing-opentelemetry`.
pub trait Propagator: Send + Sync + 'static {
    /// Makes a span that has just begun the child of `parent`.
    fn set_parent(&self, span: &Span, parent: &TraceContext);

    /// Links a span to another one.
    fn link(&self, span: &Span, to: &TraceContext);

    /// The context of a span; `None` if it is in no trace.
    fn context(&self, span: &Span) -> Option<TraceContext>;
}

static PROPAGATOR: OnceLock<Box<dyn Propagator>> = OnceLock::new();

/// Installs the propagator of the process. Only the first is used: false if there is one.
pub fn install(propagator: impl Propagator) -> bool {
    PROPAGATOR.set(Box::new(propagator)).is_ok()
}

/// Whether the process has a propagator: without one no trace is kept.
#[must_use]
pub fn is_installed() -> bool {
    PROPAGATOR.get().is_some()
}

/// What a request that is made now takes along: the context of the current span. `None` where nothing is traced.
///
/// A model's request is made in the span of its call, and so is what a tool's body does.
#[must_use]
pub fn current() -> Option<TraceContext> {
    let propagator = PROPAGATOR.get()?;
    // What a panic of it would be worth is the trace alone.
    callback::call(|| propagator.context(&Span::current())).ok().flatten()
}

/// Where a run hangs in a trace that another process began. Given to a run with [`Run::with`](crate::Run::with); it is not
/// recorded, so a resume in another process has none.
///
/// ```no_run
/// # use safepoint::{Agent, raw::trace::{RunTrace, TraceContext}};
/// # async fn handle(agent: Agent, header: &str) {
/// let run = agent.run("Look for flights.");
/// let run = match TraceContext::parse(header) {
///     Some(above) => run.with(RunTrace::below(above)),
///     None => run,
/// };
/// # drop(run.await); }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RunTrace(Arc<Joint>);

/// The two ends of a run in a trace.
#[derive(Debug, Default)]
struct Joint {
    parent: Option<TraceContext>,
    /// Held for one link or one entry; the propagator is called after it is released.
    span: Mutex<JointSpan>,
}

/// Which span the links belong to.
#[derive(Debug, Default)]
struct JointSpan {
    /// The run's span, while the run is alive: a span that is held does not end.
    span: Option<Span>,
    /// Links that came before it.
    early: Vec<TraceContext>,
}

impl RunTrace {
    /// The run's span is a child of this one.
    #[must_use]
    pub fn below(parent: TraceContext) -> Self {
        Self(Arc::new(Joint { parent: Some(parent), span: Mutex::default() }))
    }

    /// Links the run's span to another one: something else has changed the run, as a steer does. A link that finds no run alive
    /// waits for its next attempt.
    pub fn link(&self, to: TraceContext) {
        let mut joint = self.0.span.lock();
        match joint.span.clone() {
            Some(span) => {
                drop(joint);
                linked(&span, &to);
            }
            None => joint.early.push(to),
        }
    }

    /// An attempt of the run has begun, with this span.
    pub(crate) fn begin(&self, span: &Span) -> TracedAttempt {
        if let (Some(parent), Some(propagator)) = (&self.0.parent, PROPAGATOR.get())
            && callback::call(|| propagator.set_parent(span, parent)).is_err()
        {
            // The run then begins a trace.
        }
        let early = {
            let mut joint = self.0.span.lock();
            joint.span = Some(span.clone());
            std::mem::take(&mut joint.early)
        };
        early.iter().for_each(|to| linked(span, to));
        TracedAttempt { trace: self.clone(), span: span.id() }
    }
}

/// An attempt of a run in a trace. Its span is held for links until this is dropped.
#[derive(Debug)]
pub(crate) struct TracedAttempt {
    trace: RunTrace,
    /// The span's number alone: a span that is held does not end.
    span: Option<Id>,
}

impl Drop for TracedAttempt {
    fn drop(&mut self) {
        // The next attempt may have begun: its span stays.
        let over = self.trace.0.span.lock().span.take_if(|span| span.id() == self.span);
        // Without the lock.
        drop(over);
    }
}

fn linked(span: &Span, to: &TraceContext) {
    if let Some(propagator) = PROPAGATOR.get()
        && callback::call(|| propagator.link(span, to)).is_err()
    {
        // Only the link is missing.
    }
}

#[cfg(test)]
mod tests {
    use tracing::Span;

    use super::{RunTrace, TraceContext};

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// S11.14: what is no `traceparent` is in no trace, and one of a later version is read as far as it is known.
    #[test]
    fn only_a_traceparent_is_one() {
        let read = |text: &str| TraceContext::parse(text).map(|context| context.traceparent().to_owned());
        assert_eq!(read(GOOD).as_deref(), Some(GOOD));
        assert_eq!(read(&format!("01{}-more", &GOOD[2..])).as_deref(), Some(GOOD));
        for wrong in [
            "",
            "00",
            &format!("{GOOD}-more"),
            &format!("ff{}", &GOOD[2..]),
            &format!("0X{}", &GOOD[2..]),
            &GOOD.to_uppercase(),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            &GOOD.replace('-', "_"),
            "é".repeat(40).as_str(),
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    /// S11.14: a `tracestate` is passed on as it is, if a header can hold it.
    #[test]
    fn a_tracestate_is_passed_on() {
        let context = TraceContext::parse(GOOD).expect("it is one");
        let with = |state: &str| context.clone().with_state(state).tracestate().map(str::to_owned);
        assert_eq!(with(" rojo=1,congo=2 ").as_deref(), Some("rojo=1,congo=2"));
        assert_eq!(with("  "), None);
        assert_eq!(with("a=1\r\nx: 2"), None);
        assert_eq!(with(&"a".repeat(513)), None);
        let both: Vec<_> = context.clone().with_state("a=1").headers().map(|(name, _)| name).collect();
        assert_eq!(both, ["traceparent", "tracestate"]);
    }

    /// S11.14: the end of an attempt leaves the span of the next one, which may have begun before that end.
    #[test]
    fn the_end_of_an_attempt_leaves_the_span_of_the_next_one() {
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry());
        let trace = RunTrace::default();
        let (one, two) = (tracing::info_span!("one"), tracing::info_span!("two"));
        let held = || trace.0.span.lock().span.as_ref().and_then(Span::id);
        let (first, second) = (trace.begin(&one), trace.begin(&two));
        drop(first);
        assert!(two.id().is_some() && held() == two.id());
        drop(second);
        assert_eq!(held(), None);
    }
}
