//! The list that stands in the place of the input: conversations, or models.

use crossterm::event::KeyEvent;

use super::{
    kept::KeptAsk,
    picker::{PickRow, Picked, Picker},
    sessions::SessionPicker,
    state::{Action, State, Tone},
    surface::Pane,
};
use crate::prices::Figures;

/// The models that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferedModels {
    /// As `/model` takes them.
    pub(crate) names: Vec<String>,
    /// Providers that did not answer, and why.
    pub(crate) missing: Vec<String>,
}

/// What is chosen. Exhaustive: each says what its choice does.
#[derive(Clone, Debug)]
pub(super) enum Choosing {
    Session(SessionPicker),
    Model(Picker),
}

impl Choosing {
    pub(super) fn key(&mut self, key: KeyEvent) -> Picked {
        match self {
            Self::Session(list) => list.key(key),
            Self::Model(list) => list.key(key),
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        match self {
            Self::Session(list) => list.paste(text),
            Self::Model(list) => list.paste(text),
        }
    }

    pub(super) fn pane(&self, rows: usize, columns: usize) -> Pane {
        match self {
            Self::Session(list) => list.pane(rows, columns),
            Self::Model(list) => list.pane(rows, columns),
        }
    }

    /// What choosing this row does.
    pub(super) fn chosen(&self, key: String) -> Action {
        match self {
            Self::Session(_) => Action::Kept(KeptAsk::Open(key)),
            Self::Model(_) => Action::Model(key),
        }
    }
}

impl State {
    /// `/model`: the name of the one in use, and a list as soon as the providers have answered.
    pub(super) fn ask_models(&mut self) {
        self.tell(Tone::Plain, &format!("the model is {}; asking which others there are…", self.model));
        self.actions.push(Action::OfferModels);
    }

    /// Another model is used from the next turn on.
    pub(crate) fn took_model(&mut self, name: String, figures: Figures) {
        self.meter.set(figures);
        self.tell(Tone::Aside, &format!("the model is {name} from the next turn on"));
        self.kept.model = Some(name.clone());
        self.model = name;
    }

    /// Opens the list of models.
    pub(crate) fn pick_model(&mut self, offered: &OfferedModels) {
        for missing in &offered.missing {
            self.tell(Tone::Aside, &format!("no list of models from {missing}"));
        }
        if self.leaving.is_some() {
            return;
        }
        let about = |name: &str| if name == self.model { "in use" } else { "" };
        let rows = offered.names.iter().map(|name| PickRow::new(name.as_str(), [name.as_str(), about(name)]));
        self.kept.list = Some(Choosing::Model(Picker::new("Models", rows.collect())));
    }
}
