//! What the command line prints about itself, or about a mistake in its arguments.
//!
//! **Invariants**: a repeated user input stays in its line, and every character of it is visible.

use std::{borrow::Cow, error::Error as _, process::ExitCode};

use clap::{
    builder::StyledStr,
    error::{ContextValue, ErrorKind},
};

use super::{Drawn, FAILED, Piece, Stream, named, put, seen, tell};
use crate::{exit, visible::hides};

/// Prints it. Clap's own text keeps its style on a terminal; repeated user input does not.
pub(crate) fn of_clap(mut error: clap::Error) -> ExitCode {
    let stream = if error.use_stderr() { Stream::Err } else { Stream::Out };
    let is_ours = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let mut styled = Drawn::default();
    let piece = if is_ours && stream.is_terminal() {
        styled.mark(error.render().ansi());
        Piece::Drawn(styled)
    } else if is_ours {
        Piece::Words(error.render().to_string())
    } else {
        Piece::Words(mistake(&mut error))
    };
    match put(stream, &piece) {
        Err(why) if stream == Stream::Out => {
            tell(format_args!("safepoint: {why}"));
            exit::with(why.exit_code())
        }
        _ => exit::with(u8::try_from(error.exit_code()).unwrap_or(FAILED)),
    }
}

/// The message of a usage error.
fn mistake(error: &mut clap::Error) -> String {
    let of_others: Vec<_> =
        error.context().filter_map(|(kind, value)| Some((kind, in_its_line(value)?))).collect();
    for (kind, value) in of_others {
        error.insert(kind, value);
    }
    let mut text = error.render().to_string();
    // Our message about a value may repeat it.
    if let Some(why) = error.source().map(ToString::to_string) {
        text = text.replace(&why, &line(&why));
    }
    seen(&text).into_owned()
}

/// An argument's text within its line; none where it hides nothing, or is our own usage.
fn in_its_line(value: &ContextValue) -> Option<ContextValue> {
    match value {
        ContextValue::String(text) => {
            (text.contains(hides) || text.contains("://")).then(|| ContextValue::String(line(text)))
        }
        ContextValue::Strings(all) => {
            Some(ContextValue::Strings(all.iter().map(|text| line(text)).collect()))
        }
        ContextValue::StyledStrs(all) => {
            let shown = |text: &StyledStr| StyledStr::from(line(&text.to_string()));
            Some(ContextValue::StyledStrs(all.iter().map(shown).collect()))
        }
        _ => None,
    }
}

fn line(text: &str) -> String {
    named(&without_user(text).replace('\n', "\\n").replace('\t', "\\t"), hides).into_owned()
}

/// Without what stands before the host of an address: it may be a password, and the argument is repeated for its place alone.
fn without_user(text: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = text.split_once("://") else { return Cow::Borrowed(text) };
    match rest.rsplit_once('@') {
        Some((user, place)) if user.contains(':') => Cow::Owned(format!("{scheme}://…@{place}")),
        _ => Cow::Borrowed(text),
    }
}
