//! A subscriber that keeps spans as a tree, with what was recorded in them and what happened to them.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

type Fields = BTreeMap<String, String>;

/// One span.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    pub(crate) kind: &'static str,
    /// Its place among the others.
    pub(crate) parent: Option<usize>,
    pub(crate) fields: Fields,
    pub(crate) events: Vec<Fields>,
    pub(crate) is_over: bool,
}

/// All spans of a test, in the order in which they began.
#[derive(Clone, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<Collected>>>);

/// Where a span is among the others.
struct Place(usize);

struct Into<'a>(&'a mut Fields);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Spans {
    /// Collects the spans of this thread until the guard is dropped.
    pub(crate) fn collect() -> (Self, DefaultGuard) {
        let spans = Self::default();
        let subscriber = tracing_subscriber::registry().with(spans.clone());
        (spans, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn all(&self) -> Vec<Collected> {
        self.0.lock().unwrap().clone()
    }

    /// The spans of this kind.
    pub(crate) fn of(&self, kind: &str) -> Vec<Collected> {
        self.all().into_iter().filter(|span| span.kind == kind).collect()
    }

    /// Every span by its path of names in the tree, in their order.
    pub(crate) fn paths(&self) -> Vec<String> {
        let all = self.all();
        let mut paths: Vec<String> = Vec::new();
        for span in &all {
            let name = span.fields.get("otel.name").map_or(span.kind, String::as_str);
            let above = span.parent.map(|parent| format!("{}/", paths[parent])).unwrap_or_default();
            paths.push(format!("{above}{name}"));
        }
        paths
    }
}

impl Collected {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// The names of its events.
    pub(crate) fn events(&self) -> Vec<&str> {
        self.events.iter().map(|event| event["message"].as_str()).collect()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let span = cx.span(id).expect("the span is open");
        let parent = span.parent().and_then(|parent| parent.extensions().get::<Place>().map(|place| place.0));
        let mut all = self.0.lock().unwrap();
        let mut collected = Collected { kind: span.name(), parent, ..Collected::default() };
        attributes.record(&mut Into(&mut collected.fields));
        span.extensions_mut().insert(Place(all.len()));
        all.push(collected);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        let place = place(id, &cx);
        values.record(&mut Into(&mut self.0.lock().unwrap()[place].fields));
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let Some(span) = event.parent().cloned().or_else(|| cx.lookup_current().map(|span| span.id())) else {
            return;
        };
        let mut fields = Fields::new();
        event.record(&mut Into(&mut fields));
        let place = place(&span, &cx);
        self.0.lock().unwrap()[place].events.push(fields);
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        let place = place(&id, &cx);
        self.0.lock().unwrap()[place].is_over = true;
    }
}

fn place<S: Subscriber + for<'a> LookupSpan<'a>>(id: &Id, cx: &Context<'_, S>) -> usize {
    cx.span(id).expect("the span is open").extensions().get::<Place>().expect("it has its place").0
}
