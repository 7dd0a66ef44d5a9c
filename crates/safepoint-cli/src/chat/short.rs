//! What is said of an output, an answer and a receipt in few lines; the whole is elsewhere, and it is said where.

use safepoint::{
    Receipt,
    approval::{Covers, Decision},
    event::{Answered, Extent},
};

use super::state::{State, Tone};

impl State {
    /// The first lines of what a call came to, and how much there is more, where.
    pub(super) fn output(&mut self, output: &str, extent: &Extent) {
        const SHOWN: usize = 5;
        let lines: Vec<&str> = output.lines().collect();
        for line in lines.iter().take(SHOWN) {
            self.tell(Tone::Aside, &format!("  {line}"));
        }
        let more = match extent {
            Extent::All if lines.len() <= SHOWN => return,
            Extent::All => format!("{} more lines", lines.len() - SHOWN),
            Extent::Truncated { bytes, file: Some(file) } => format!("{bytes} bytes in all: {file}"),
            Extent::Truncated { bytes, file: None } => {
                format!("{bytes} bytes in all, of which the beginning and the end are kept")
            }
        };
        self.tell(Tone::Aside, &format!("  … {more}"));
    }
}

pub(super) fn answered(answer: &Answered) -> &'static str {
    match answer {
        Answered::Decided(Decision::Approve | Decision::ApproveWith { .. }) => "  allowed",
        Answered::Decided(Decision::ApproveAlways { covers: Covers::Call }) => {
            "  allowed, and not asked again in this session with these arguments"
        }
        Answered::Decided(Decision::ApproveAlways { covers: Covers::Tool }) => {
            "  allowed, and not asked again in this session, whatever the arguments"
        }
        Answered::Decided(Decision::Deny { .. }) => "  denied",
        Answered::Decided(Decision::Respond { .. }) => "  answered instead",
        Answered::Expired => "  nobody answered in time: denied",
        Answered::Withdrawn => "  (the question is withdrawn)",
    }
}

/// The receipt without its last line, which is told once it is known; long lists are cut.
pub(super) fn few_lines(receipt: &Receipt) -> String {
    const SHOWN: usize = 9;
    let text = receipt.to_string();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.pop();
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    let more = if more > 0 { format!("\n  … {more} more lines: /receipt") } else { String::new() };
    format!("{}{more}", lines.join("\n"))
}
