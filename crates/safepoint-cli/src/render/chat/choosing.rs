//! The list that stands in the place of the input: conversations, models, or the turns to go back to.

use crossterm::event::KeyEvent;
use safepoint::ids::TurnId;

use super::{
    kept::KeptAsk,
    picker::{PickRow, Picked, Picker},
    rewind::RewindAsk,
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

/// A turn to go back to.
#[derive(Clone, Debug)]
pub(crate) struct TurnRow {
    pub(crate) number: u64,
    /// What the person said.
    pub(crate) said: String,
    /// How long ago it began.
    pub(crate) when: String,
}

/// What is chosen. Exhaustive: each says what its choice does.
#[derive(Clone, Debug)]
pub(super) enum Choosing {
    Session(SessionPicker),
    Model(Picker),
    Turn(Picker),
}

impl Choosing {
    pub(super) fn key(&mut self, key: KeyEvent) -> Picked {
        match self {
            Self::Session(list) => list.key(key),
            Self::Model(list) | Self::Turn(list) => list.key(key),
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        match self {
            Self::Session(list) => list.paste(text),
            Self::Model(list) | Self::Turn(list) => list.paste(text),
        }
    }

    pub(super) fn pane(&self, rows: usize, columns: usize) -> Pane {
        match self {
            Self::Session(list) => list.pane(rows, columns),
            Self::Model(list) | Self::Turn(list) => list.pane(rows, columns),
        }
    }

    /// What choosing this row does, if it does anything.
    pub(super) fn chosen(&self, key: String) -> Option<Action> {
        match self {
            Self::Session(_) => Some(Action::Kept(KeptAsk::Open(key))),
            Self::Model(_) => Some(Action::Model(key)),
            Self::Turn(_) => {
                let turn = TurnId::new(key.parse().ok()?);
                Some(Action::Rewind(RewindAsk::Before(turn, Vec::new())))
            }
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

    /// Opens the list of turns. Choosing one only shows what going back to before it would do.
    pub(crate) fn pick_turn(&mut self, turns: impl Iterator<Item = TurnRow>) {
        if self.leaving.is_some() || self.work.is_some() {
            return;
        }
        let rows = turns.map(|turn| PickRow::new(turn.number.to_string(), [turn.said, format!("turn {}", turn.number), turn.when]));
        let mut picker = Picker::new("Go back to before", rows.collect());
        picker.hint("what it would do is shown first");
        self.kept.list = Some(Choosing::Turn(picker));
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
