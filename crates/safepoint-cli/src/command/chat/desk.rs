//! What the chat does for the person who types: files and inputs are looked up, attachments read, and the keys are given to an
//! external editor for a while.
//!
//! **Invariants**: nothing here blocks the loop of the chat; what a task finds comes back as news.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use safepoint::secret::Secrets;
use tokio::{sync::mpsc::UnboundedSender, task::spawn_blocking};

use super::{
    driver::Driver,
    later::Later,
    lent::{Keys, Lent},
    own::OwnCommand,
};
use crate::{
    render::chat::{
        completion::{FoundFiles, Offer},
        mention::pasted_path,
        typing::{TypingAction, TypingNews},
    },
    session::{attachments, files::Files},
    settings::{AgentSettings, inputs::Inputs, secrets},
};

/// What is needed for it.
pub(crate) struct Desk {
    pub(super) keys: Keys,
    pub(super) root: PathBuf,
    files: Arc<Files>,
    /// None where the chat is not stored: it writes none.
    kept: Option<Arc<Inputs>>,
    /// None without a home directory.
    read: Option<Arc<Inputs>>,
    pub(super) secrets: Secrets,
    pub(super) own: Option<OwnCommand>,
    pub(super) lent: Lent,
}

impl Desk {
    /// For a chat with these settings.
    ///
    /// # Errors
    /// If the working directory cannot be used.
    pub(crate) fn new(settings: &AgentSettings, is_kept: bool) -> io::Result<Self> {
        let root = settings.args.root.clone().map_or_else(std::env::current_dir, std::path::absolute)?;
        let secrets = secrets::known(settings);
        let read = Inputs::usual(secrets.clone()).map(Arc::new);
        let kept = read.clone().filter(|_| is_kept);
        let files = Arc::new(Files::new(root.clone()));
        let (keys, own, lent) = (Keys::default(), None, Lent::default());
        Ok(Self { keys, root, files, kept, read, secrets, own, lent })
    }
}

impl Driver {
    /// Reads what was entered in other chats.
    pub(super) fn read_inputs(&self) {
        let Some(inputs) = self.desk.read.clone() else { return };
        let later = self.later.0.clone();
        spawn_blocking(move || {
            let texts = inputs.read().unwrap_or_default();
            tell(&later, TypingNews::Earlier(texts));
        });
    }

    /// Writes what was entered here, if the chat is stored.
    pub(super) fn keep_inputs(&mut self) {
        let texts = self.state.typing.take_entered();
        let Some(inputs) = self.desk.kept.clone().filter(|_| !texts.is_empty()) else { return };
        spawn_blocking(move || {
            if inputs.add(&texts).is_err() {
                // It is a convenience: a full disk ends no chat. The session has the messages.
            }
        });
    }

    pub(super) fn typing(&mut self, action: TypingAction) {
        match action {
            TypingAction::Find(query) => self.find(query),
            TypingAction::LookAt(pasted) => self.look_at(pasted),
            TypingAction::Send { text, how, files } => self.read_files(text, how, files),
            TypingAction::Edit(draft) => self.edit(draft),
            TypingAction::Run(command) => self.run_own(command),
            TypingAction::StopOwn => self.stop_own(),
        }
    }

    pub(super) fn typing_news(&mut self, news: TypingNews) {
        if let TypingNews::Edited(..) = news {
            self.take_back_terminal();
        }
        if let TypingNews::Own(ref own) = news {
            self.own_is_over(own);
        }
        let acts = self.state.typing_news(news, std::time::Instant::now());
        self.act(acts);
    }

    fn find(&self, query: String) {
        let (files, later) = (Arc::clone(&self.desk.files), self.later.0.clone());
        let number = files.begin();
        if files.is_due() {
            let (files, later) = (Arc::clone(&files), later.clone());
            spawn_blocking(move || {
                files.walk();
                tell(&later, TypingNews::MoreFiles);
            });
        }
        spawn_blocking(move || {
            if let Some(fitting) = files.look(&query, number) {
                let (paths, of, is_whole) = (fitting.paths, fitting.of, fitting.is_whole);
                tell(&later, TypingNews::Found(FoundFiles { query, paths, of, is_whole }));
            }
        });
    }

    fn look_at(&self, pasted: String) {
        let (root, later) = (self.desk.root.clone(), self.later.0.clone());
        spawn_blocking(move || {
            let Some(path) = pasted_path(&pasted) else { return };
            let file = place(&root, Path::new(&path));
            let Ok(part) = attachments::part(&file) else { return };
            let size = std::fs::metadata(&file).map(|about| about.len()).unwrap_or_default();
            let path = named(&root, &file);
            let what = format!("{}, {}", part.media_type, kilobytes(size));
            tell(&later, TypingNews::Attachable(Offer { pasted, path, what }));
        });
    }
}

/// Where a path of a message is.
pub(super) fn place(root: &Path, path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => root.join(path),
    }
}

/// A file as a message names it: from the root on, if it is below it.
fn named(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned()
}

fn kilobytes(bytes: u64) -> String {
    match bytes.div_ceil(1000) {
        kilobytes @ 0..1000 => format!("{kilobytes} kB"),
        kilobytes => format!("{:.1} MB", kilobytes as f64 / 1000.0),
    }
}

pub(super) fn tell(to: &UnboundedSender<Later>, news: TypingNews) {
    post(to, Later::Typing(news));
}

pub(super) fn post(to: &UnboundedSender<Later>, what: Later) {
    if to.send(what).is_err() {
        // The chat is over, and shows nothing more.
    }
}
