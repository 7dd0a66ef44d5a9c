//! What a helper is asked to do, as arguments: whatever the bytes of a path are.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use crate::{
    layers::{ARGUMENT, Layer},
    opening::Opening,
};

/// What the command stands behind.
const COMMAND: &str = "--";

/// One command, and what confines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) write: Vec<PathBuf>,
    pub(crate) hide: Vec<PathBuf>,
    pub(crate) opening: Option<Opening>,
    /// What is to be applied: it was found to be there.
    pub(crate) held: Vec<Layer>,
    pub(crate) temporary: PathBuf,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
}

impl Plan {
    pub(crate) fn holds(&self, layer: Layer) -> bool {
        self.held.contains(&layer)
    }

    pub(crate) fn written(self) -> Vec<OsString> {
        let mut written: Vec<OsString> = vec![ARGUMENT.into()];
        let mut say = |word: &str, value: OsString| written.extend([word.into(), value]);
        self.held.iter().for_each(|layer| say("layer", layer.name().into()));
        self.write.into_iter().for_each(|path| say("write", path.into()));
        self.hide.into_iter().for_each(|path| say("hide", path.into()));
        self.opening.iter().for_each(|opening| say("open", name(*opening).into()));
        say("temporary", self.temporary.into());
        written.extend([COMMAND.into(), self.program]);
        written.extend(self.args);
        written
    }

    /// Reads what is behind [`ARGUMENT`]; none if it is not understood.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut args = args.into_iter();
        let (mut write, mut hide, mut held) = (Vec::new(), Vec::new(), Vec::new());
        let (mut opening, mut temporary) = (None, None);
        loop {
            let word = args.next()?;
            if word == COMMAND {
                break;
            }
            let value = args.next()?;
            match word.to_str()? {
                "layer" => held.push(Layer::of(value.to_str()?)?),
                "write" => write.push(value.into()),
                "hide" => hide.push(value.into()),
                "open" => opening = Some(opened(&value)?),
                "temporary" => temporary = Some(value.into()),
                _ => return None,
            }
        }
        let (temporary, program) = (temporary?, args.next()?);
        Some(Self { write, hide, opening, held, temporary, program, args: args.collect() })
    }
}

fn name(opening: Opening) -> &'static str {
    match opening {
        Opening::Network => "network",
        Opening::Files => "files",
    }
}

fn opened(name: &OsStr) -> Option<Opening> {
    match name.to_str()? {
        "network" => Some(Opening::Network),
        "files" => Some(Opening::Files),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else_is() {
        let plan = Plan {
            write: vec!["/root dir".into(), "--".into()],
            hide: vec!["/store".into()],
            opening: Some(Opening::Network),
            held: vec![Layer::Files, Layer::Calls],
            temporary: "/tmp/x".into(),
            program: "sh".into(),
            args: vec!["-c".into(), "--".into()],
        };
        let written = plan.clone().written();
        assert_eq!(Plan::read(written.iter().skip(1).cloned()), Some(plan));
        for wrong in [vec!["layer", "walls", "--", "sh"], vec!["--", "sh"], vec!["temporary", "/t", "--"]] {
            assert_eq!(Plan::read(wrong.iter().map(OsString::from)), None, "{wrong:?}");
        }
    }
}
