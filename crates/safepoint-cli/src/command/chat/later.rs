//! What comes back from tasks: nothing in the loop of a chat waits for a store, a file, a model or another program.

use std::time::Instant;

use safepoint::{
    History,
    approval::ApprovalRequest,
    ids::{ApprovalId, ItemId},
};

use super::{
    conversations::KeptNews,
    driver::Driver,
    rewinding::{Next, RewindNews},
    sending::WithFiles,
};
use crate::{
    prices::Figures,
    render::{
        chat::{
            asked::ReviewOf, choosing::OfferedModels, kept::KeptAsk, meter::table::Fixed, state::Tone,
            typing::TypingNews,
        },
        edit::EditView,
    },
};

/// What acts come to, once it is known.
pub(crate) enum Later {
    Back(String),
    /// The same at a stop.
    Handed(String),
    /// The queued items, of this process and of others.
    Waits(Vec<(ItemId, String)>),
    /// The same as the chat ends.
    Left,
    Message(Tone, String),
    /// Approvals that are no longer open.
    Gone(Vec<ApprovalId>),
    Model(String, Figures),
    /// The conversation, and what each request holds beside it.
    Context(History, Fixed),
    Models(OfferedModels),
    Listed(Vec<String>, String),
    Next(String),
    Rewind(RewindNews),
    /// What the call of a question would change, if that can be shown.
    Previewed(Box<ApprovalRequest>, Option<EditView>),
    /// A question that is open again: its answer was refused.
    AskAgain(Box<ApprovalRequest>),
    /// The pager was left, and why it did not show anything.
    Paged(Option<String>),
    Typing(TypingNews),
    WithFiles(WithFiles),
    Kept(KeptNews),
    Review(ReviewOf),
    /// There is no turn to resume: another conversation may be.
    Pick,
}

impl Driver {
    pub(super) fn take_later(&mut self, later: Later) {
        match later {
            Later::Back(text) => self.state.back(&text),
            Later::Handed(text) => self.state.handed(text),
            Later::Waits(waiting) => self.take_waiting(waiting),
            Later::Message(tone, text) => self.state.tell(tone, &text),
            Later::Gone(gone) => self.state.gone(&gone, Instant::now()),
            Later::Model(name, figures) => self.state.took_model(name, figures),
            Later::Context(history, fixed) => self.state.tell_context(&history, &fixed),
            Later::Models(offered) => self.state.pick_model(&offered),
            Later::Listed(ids, text) => {
                self.listed = ids;
                self.state.tell(Tone::Plain, &text);
            }
            Later::Next(id) => self.leave_for(Next { id, ..Next::default() }),
            Later::Rewind(news) => self.rewind_news(news),
            Later::Previewed(asked, view) => self.previewed(&asked, view),
            Later::AskAgain(question) => self.state.ask_again(*question, Instant::now()),
            Later::Paged(failure) => self.paged(failure),
            Later::Typing(news) => self.typing_news(news),
            Later::WithFiles(message) => self.push_with(message),
            Later::Kept(news) => self.kept_news(news),
            Later::Review(of) => self.state.review(&of),
            Later::Pick => self.kept(KeptAsk::Pick),
            // The session has reported it.
            Later::Left => {}
        }
    }
}
