//! A history that does not fit: refused, shortened, or summarised by a separate model call (S12.2).

use std::sync::Arc;

use futures_core::future::BoxFuture;
use safepoint_scope::SafePoints;

use super::{Driver, LogFailure};
use crate::{
    contract::{
        hook::HookOf,
        model::{Guarded, GuardedConversation, GuardedReply, ModelSpec},
    },
    definition::window::{Cut, Summariser, WindowMeter, transcript},
    value::{
        event::{Completion, ErrorReport, Fact},
        history::{History, Message},
        message::AssistantMessage,
        receipt::ModelReport,
    },
};

/// The code of a conversation that does not fit, whether the engine or the provider finds out.
const CODE: &str = "context_window";

/// A summary in progress.
pub(super) struct SummaryCall {
    cut: Cut,
    input: History,
    model: Guarded,
    conversation: GuardedConversation,
}

impl SummaryCall {
    pub(super) fn stream(&mut self) -> GuardedReply {
        self.conversation.stream(&self.input)
    }

    pub(super) fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        self.conversation.release()
    }

    pub(super) fn model(&self) -> Arc<str> {
        self.model.shared_name()
    }
}

impl Driver {
    /// Omits the oldest rounds from what is sent, with a note in their place.
    pub(super) async fn shorten(&mut self, cut: &Cut) -> Result<(), LogFailure> {
        let def = Arc::clone(&self.cx.def);
        if let Some(meter) = &def.meter {
            let shortened = meter.noted(self.machine.history(), cut);
            self.record(Fact::HistoryShortened(shortened)).await?;
        }
        Ok(())
    }

    /// Has a model write a summary of them: announced, permitted and stopped like any model call.
    pub(super) async fn summarise(&mut self, cut: Cut, gate: SafePoints) -> Result<(), LogFailure> {
        let def = Arc::clone(&self.cx.def);
        let Some(meter) = &def.meter else { return Ok(()) };
        let model = match meter.summariser() {
            Some(Summariser::Other(model)) => def.cleaned(Arc::clone(model)),
            Some(Summariser::Own) | None => def.model.clone(),
        };
        let round = self.machine.next_round();
        let of = HookOf::Summary(round);
        if !def.hooks.is_empty() {
            if self.hooks.request(&of).is_none() {
                self.hooks.change_request(of.clone(), self.to_summarise(&cut, meter));
            }
            if !self.request_passed(&of, |hooks, request| hooks.before_summary(round, request)) {
                return self.wait().await;
            }
        }
        let input = self.hooks.take_request(&of).unwrap_or_else(|| self.to_summarise(&cut, meter));
        let announced = self.record(Fact::SummaryStarted { round }).await?;
        let output_bytes = def.limits.model_output_bytes;
        let spec = ModelSpec { system: Some(meter.instructions()), output_bytes, ..ModelSpec::default() };
        let conversation = model.open(spec);
        let summary = Box::new(SummaryCall { cut, input, model, conversation });
        self.stream(round, Some(summary), (gate, &announced)).await
    }

    /// The request for a summary of the rounds that are cut.
    fn to_summarise(&self, cut: &Cut, meter: &WindowMeter) -> History {
        let mut input = History::new();
        let text = transcript(self.machine.history(), cut, meter.readable(cut));
        input.push(Message::User(text.into()));
        input
    }

    /// A complete summary takes their place in the same fact; an incomplete one changes nothing.
    pub(super) async fn summarised(
        &mut self,
        summing: &mut SummaryCall,
        message: &AssistantMessage,
        (whole, report): (Completion, ModelReport),
    ) -> Result<(), LogFailure> {
        let text = message.text();
        let whole = match whole {
            Completion::Complete if text.trim().is_empty() => Completion::Failed(self.unsummed(silent())),
            Completion::Failed(error) => Completion::Failed(self.unsummed(error)),
            whole @ (Completion::Complete | Completion::Stopped | Completion::Steered) => whole,
        };
        let shortened = match (&whole, &self.cx.def.meter) {
            (Completion::Complete, Some(meter)) => {
                Some(meter.summed_up(self.machine.history(), &summing.cut, text.trim()))
            }
            _ => None,
        };
        self.record(Fact::SummaryEnded { whole, report, shortened }).await?;
        Ok(())
    }

    /// The error of a summary that failed.
    fn unsummed(&self, error: ErrorReport) -> ErrorReport {
        let meter = self.cx.def.meter.as_ref();
        let what = match meter.is_some_and(WindowMeter::is_compacting) {
            true => "the conversation was not compacted: its summary failed",
            false => "the conversation does not fit, and its summary failed",
        };
        ErrorReport { message: format!("{what}: {}", error.message), ..error }
    }

    /// Fails the run, since nothing is sent that cannot fit.
    pub(super) fn refuse(&mut self, text: String) {
        let hint = "give the run a larger window (and a model that has it), let it drop or summarise its oldest \
                    rounds, or begin a new conversation";
        self.fail(CODE, text, Some(hint));
    }
}

fn silent() -> ErrorReport {
    let hint = "resume to try again, or let the run drop its oldest rounds";
    ErrorReport::new("provider", "the model said nothing", Some(hint))
}
