//! What a tool returns: text, and beside it a value, images and files.

use std::path::PathBuf;

use serde_json::Value;

use crate::value::message::Part;

/// What a tool gives back. Text alone is enough: whatever is `Into<String>` is `Into<Output>`.
///
/// ```
/// use safepoint::{message::Part, tool::Output};
/// let chart = Part::image("image/png", &[137, 80, 78, 71])?;
/// let output = Output::from("the chart of May").with(chart);
/// assert_eq!(output.parts.len(), 1);
/// assert_eq!(Output::json(serde_json::json!({"degrees": 21})).text, r#"{"degrees":21}"#);
/// # Ok::<(), safepoint::message::TooLarge>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The text for the model.
    pub text: String,
    /// Images and files. On a wire that does not take one, the model sees that it is left out.
    pub parts: Vec<Part>,
    /// The same as a value; see [`Output::json`].
    pub structured: Option<Value>,
    /// Where all of it is, if `text` is only a part of what there was.
    pub whole: Option<FullOutput>,
}

/// An output that its tool had to shorten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullOutput {
    /// How many bytes it had.
    pub bytes: usize,
    /// The file that holds it, if there is one.
    pub file: Option<PathBuf>,
}

impl<T: Into<String>> From<T> for Output {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl Output {
    /// A value: the model gets its JSON, or the value itself on a wire that takes values.
    #[must_use]
    pub fn json(value: Value) -> Self {
        Self { text: value.to_string(), structured: Some(value), ..Self::default() }
    }

    /// Adds an image or a file.
    #[must_use]
    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Marks the text as a part of a longer output.
    #[must_use]
    pub fn of(mut self, whole: FullOutput) -> Self {
        self.whole = Some(whole);
        self
    }
}
