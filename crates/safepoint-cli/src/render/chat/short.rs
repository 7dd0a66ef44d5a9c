//! An output, an answer and a receipt in few lines, with the place of the whole.

use safepoint::{
    Receipt,
    approval::{AllowScope, Decision},
    event::Resolution,
    message::ProviderBlock,
    raw::OutputExtent,
};

use super::state::{State, Tone};
use crate::render::{provider, text::at_running};

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

    /// The first lines of what a call came to, and how much there is more, where.
    pub(crate) fn output(&mut self, output: &str, extent: &OutputExtent) {
        const SHOWN: usize = 5;
        let lines: Vec<&str> = output.lines().collect();
        for line in lines.iter().take(SHOWN) {
            self.tell(Tone::Aside, &format!("  {line}"));
        }
        let more = match extent {
            OutputExtent::All if lines.len() <= SHOWN => return,
            OutputExtent::All => format!("{} more lines: Ctrl-O shows all", lines.len() - SHOWN),
            OutputExtent::Truncated { bytes, file: Some(file) } => format!("{bytes} bytes in all: {file}"),
            OutputExtent::Truncated { bytes, file: None } => {
                format!("{bytes} bytes in all, of which the beginning and the end are kept")
            }
        };
        self.folded(output);
        self.tell(Tone::Aside, &format!("  … {more}"));
    }
}

pub(crate) fn answered(answer: &Resolution) -> &'static str {
    match answer {
        Resolution::Decided(Decision::Approve | Decision::ApproveWith { .. }) => "  allowed",
        Resolution::Decided(Decision::ApproveAlways { covers: AllowScope::Call }) => {
            "  allowed, and not asked again in this session with these arguments"
        }
        Resolution::Decided(Decision::ApproveAlways { covers: AllowScope::Tool }) => {
            "  allowed, and not asked again in this session, whatever the arguments"
        }
        Resolution::Decided(Decision::Deny { .. }) => "  denied",
        Resolution::Decided(Decision::Respond { .. }) => "  answered instead",
        Resolution::Expired => "  expired without an answer: denied",
        Resolution::Withdrawn => "  (the question is withdrawn)",
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
