//! An output, an answer and a receipt in few lines, with the place of the whole.

use safepoint::{
    Receipt,
    approval::{AllowScope, ApprovalRequest, Decision},
    event::Resolution,
    message::ProviderBlock,
    raw::OutputExtent,
};

use super::state::{State, Tone};
use crate::{
    render::{call, provider, text::at_running},
    visible,
};

impl State {
    /// What the provider did itself: its tools, and the first lines of what they gave.
    pub(crate) fn provider(&mut self, block: &ProviderBlock) {
        if let Some(begun) = provider::begun(block, Some(self.columns)) {
            self.end_text();
            self.tell(Tone::Aside, &begun);
        }
        if let Some(gave) = provider::gave(block) {
            self.end_text();
            self.tell(Tone::Aside, &gave.head());
            self.output(gave.text, &OutputExtent::All);
        }
    }

    /// The first and the last lines of what a call came to, and how much there is between them, or where all of it is.
    pub(crate) fn output(&mut self, output: &str, extent: &OutputExtent) {
        // Why a command failed stands at its end.
        const FIRST: usize = 2;
        const LAST: usize = 3;
        let lines: Vec<&str> = output.lines().collect();
        let left_out = lines.len().saturating_sub(FIRST + LAST);
        // A row that says "1 more line" is no shorter than the line.
        let left_out = if left_out == 1 { 0 } else { left_out };
        let first = if left_out == 0 { &lines[..] } else { &lines[..FIRST] };
        self.tell_lines(first);
        let more = match extent {
            OutputExtent::All if left_out == 0 => return,
            OutputExtent::All => format!("{left_out} more lines: Ctrl-O shows all"),
            OutputExtent::Truncated { bytes, file: Some(file) } => format!("{bytes} bytes in all: {file}"),
            OutputExtent::Truncated { bytes, file: None } => {
                format!("{bytes} bytes in all, of which the beginning and the end are kept")
            }
        };
        self.folded(output);
        self.tell(Tone::Aside, &format!("  … {more}"));
        self.tell_lines(&lines[first.len() + left_out..]);
    }

    fn tell_lines(&mut self, lines: &[&str]) {
        for line in lines {
            self.tell(Tone::Aside, &format!("  {line}"));
        }
    }
}

/// The call of a question in a few words: its tool, and the arguments where they are short.
pub(crate) fn named(asked: &ApprovalRequest) -> String {
    const LETTERS: usize = 48;
    let args = call::in_words(&asked.tool, &asked.args);
    visible::one_line(&format!("{} {args}", asked.tool), LETTERS)
}

/// What an answer came to.
pub(crate) fn answered(answer: &Resolution) -> &'static str {
    match answer {
        Resolution::Decided(Decision::Approve | Decision::ApproveWith { .. }) => "allowed",
        Resolution::Decided(Decision::ApproveAlways { covers: AllowScope::Call }) => {
            "allowed, and not asked again in this session with these arguments"
        }
        Resolution::Decided(Decision::ApproveAlways { covers: AllowScope::Tool }) => {
            "allowed, and not asked again in this session, whatever the arguments"
        }
        Resolution::Decided(Decision::Deny { .. }) => "denied",
        Resolution::Decided(Decision::Respond { .. }) => "answered instead",
        Resolution::Expired => "expired without an answer: denied",
        Resolution::Withdrawn => "(the question is withdrawn)",
    }
}

/// The receipt up to its `running` row, which is shown once the turn is quiet; long lists are cut.
pub(crate) fn few_lines(receipt: &Receipt) -> String {
    const SHOWN: usize = 9;
    let text = receipt.to_string();
    let mut lines: Vec<&str> = at_running(&text).0.lines().collect();
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    let more = if more > 0 { format!("\n  … {more} more lines: /receipt") } else { String::new() };
    format!("{}{more}", lines.join("\n"))
}
