//! What the body of a tool may return, and how that becomes its output.

use std::{borrow::Cow, sync::Arc};

use safepoint_scope::{Failure, Halt};
use serde::Serialize;
use serde_json::Value;

use super::{Output, ToolResult};
use crate::value::message::Part;

/// What a tool may return: text, a number, a `bool`, [`Json`] of anything that serialises, an image or a file ([`Part`]),
/// [`Output`], or `()` for nothing; and a `Result` of these with any error, as [`Halt`] takes it.
///
/// ```
/// use safepoint::tool::{IntoOutput, Output};
///
/// struct Celsius(f64);
///
/// impl IntoOutput for Celsius {
///     fn into_output(self) -> safepoint::ToolResult {
///         Ok(Output::from(format!("{:.1} °C", self.0)))
///     }
/// }
/// assert_eq!(Celsius(21.25).into_output().ok().map(|output| output.text).as_deref(), Some("21.2 °C"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what a tool returns",
    label = "not the output of a tool",
    note = "return text, a number, `Json(value)` of a type that implements `serde::Serialize`, `Output`, or `()`",
    note = "or a `Result` of one of these; or implement `IntoOutput` for your own type"
)]
pub trait IntoOutput {
    /// Makes it the output.
    ///
    /// # Errors
    /// The stop or the failure that there is in place of an output.
    fn into_output(self) -> ToolResult;
}

/// A value as a tool's output: the model gets its JSON, or the value itself on a wire that takes values.
///
/// ```
/// use safepoint::{ToolResult, tool::{self, Json}};
///
/// #[derive(serde::Serialize)]
/// struct Weather { degrees: i32, rain: bool }
///
/// let weather = tool::from_fn("weather", "Says the weather", |_cx, (): ()| async {
///     Ok(Json(Weather { degrees: 21, rain: false }))
/// });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoOutput for Json<T> {
    fn into_output(self) -> ToolResult {
        let value = serde_json::to_value(self.0);
        let value =
            value.map_err(|error| Failure::new(format!("the output cannot be written as JSON: {error}")))?;
        Ok(Output::json(value))
    }
}

impl<T: IntoOutput, E: Into<Halt>> IntoOutput for Result<T, E> {
    fn into_output(self) -> ToolResult {
        self.map_err(Into::into)?.into_output()
    }
}

/// Nothing where there is none.
impl<T: IntoOutput> IntoOutput for Option<T> {
    fn into_output(self) -> ToolResult {
        self.map_or_else(|| Ok(Output::default()), T::into_output)
    }
}

impl IntoOutput for Output {
    fn into_output(self) -> ToolResult {
        Ok(self)
    }
}

impl IntoOutput for Part {
    fn into_output(self) -> ToolResult {
        Ok(Output::default().with(self))
    }
}

impl IntoOutput for Value {
    fn into_output(self) -> ToolResult {
        Ok(Output::json(self))
    }
}

impl IntoOutput for () {
    fn into_output(self) -> ToolResult {
        Ok(Output::default())
    }
}

macro_rules! text {
    ($($text:ty),*) => {$(
        impl IntoOutput for $text {
            fn into_output(self) -> ToolResult {
                Ok(Output::from(self))
            }
        }
    )*};
}
text!(String, &str, Box<str>, Cow<'_, str>);

macro_rules! shown {
    ($($shown:ty),*) => {$(
        impl IntoOutput for $shown {
            fn into_output(self) -> ToolResult {
                Ok(Output::from(self.to_string()))
            }
        }
    )*};
}
shown!(Arc<str>, bool, char, i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
