//! The file of what was entered in chats, for the search in it: one JSON string a line, the newest last.
//!
//! **Invariants**
//! - Only its owner can read the file. No secret that this program knows is written.
//! - It has at most [`MOST`] bytes and a little more. One program at a time changes it.

use std::{
    env,
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use safepoint::secret::Secrets;

/// The most bytes; a file that is larger is cut to the newest half.
const MOST: u64 = 2 << 20;
/// A longer input is not kept.
const LONGEST: usize = 32 << 10;
const OWNER: u32 = 0o600;

/// The file of what was entered.
pub(crate) struct Inputs {
    path: PathBuf,
    secrets: Secrets,
}

impl Inputs {
    /// The usual one; none without a home directory.
    pub(crate) fn usual(secrets: Secrets) -> Option<Self> {
        Some(Self { path: usual_place()?, secrets })
    }

    /// What is in it, the oldest first; nothing where there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(&self) -> io::Result<Vec<String>> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(file) => file.take(2 * MOST).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        // A line that another program has cut off is left out.
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Adds what was entered.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn add(&self, texts: &[String]) -> io::Result<()> {
        let mut lines = String::new();
        for text in texts.iter().filter(|text| text.len() <= LONGEST && !text.trim().is_empty()) {
            let text = self.secrets.clean(text.as_str());
            lines.push_str(&serde_json::to_string(&text)?);
            lines.push('\n');
        }
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut file = self.locked()?;
        if file.metadata()?.len() + lines.len() as u64 > MOST {
            file = self.cut(&mut file)?;
        }
        file.write_all(lines.as_bytes())
    }

    /// The file, which no other program changes as long as it is open.
    fn locked(&self) -> io::Result<File> {
        const TRIES: usize = 16;
        for _ in 0..TRIES {
            let file =
                OpenOptions::new().read(true).append(true).create(true).mode(OWNER).open(&self.path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // Another program may have put a shorter one in its place meanwhile.
            if is_same(&file, &self.path) {
                file.set_permissions(Permissions::from_mode(OWNER))?;
                return Ok(file);
            }
        }
        Err(io::Error::other("other programs change it all the time"))
    }

    /// Puts a file with the newest half in its place.
    fn cut(&self, file: &mut File) -> io::Result<File> {
        let keep = MOST / 2;
        let from = file.metadata()?.len().saturating_sub(keep);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        let mut name: OsString = self.path.clone().into_os_string();
        name.push(".new");
        let new =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(OWNER).open(&name)?;
        flock(&new, FlockOperation::LockExclusive)?;
        let mut new = new;
        new.write_all(&bytes[whole..])?;
        fs::rename(&name, &self.path)?;
        Ok(new)
    }
}

/// `$XDG_STATE_HOME/safepoint/inputs.jsonl`, or the same under `~/.local/state`.
fn usual_place() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(state.or_else(home)?.join("safepoint").join("inputs.jsonl"))
}

fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let place = |about: fs::Metadata| (about.dev(), about.ino());
    file.metadata().map(place).ok() == fs::metadata(path).map(place).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(folder: &tempfile::TempDir) -> Inputs {
        let secrets = Secrets::of([("KEY".to_owned(), "sk-unicorn-123456".to_owned())]);
        Inputs { path: folder.path().join("state/inputs.jsonl"), secrets }
    }

    /// S12.53: what was entered is kept in order, for its owner alone, and without the secrets that the program knows.
    #[test]
    fn what_was_entered_is_kept_without_secrets_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = inputs(&folder);
        assert_eq!(inputs.read().unwrap(), Vec::<String>::new());
        inputs.add(&["one\ntwo".to_owned(), " ".to_owned()]).unwrap();
        inputs.add(&["use sk-unicorn-123456 now".to_owned(), "x".repeat(LONGEST + 1)]).unwrap();
        let read = inputs.read().unwrap();
        assert_eq!((read.len(), &*read[0]), (2, "one\ntwo"), "{read:?}");
        assert!(read[1].starts_with("use ") && !read[1].contains("unicorn"), "{read:?}");
        let mode = fs::metadata(&inputs.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, OWNER);
    }

    /// S12.53: the file is bounded; the newest inputs stay.
    #[test]
    fn the_file_of_inputs_is_bounded() {
        const SIZE: usize = 20 << 10;
        let folder = tempfile::tempdir().unwrap();
        let inputs = inputs(&folder);
        for number in 0..150 {
            inputs.add(&[format!("{number} {}", "x".repeat(SIZE))]).unwrap();
        }
        assert!(fs::metadata(&inputs.path).unwrap().len() <= MOST);
        let read = inputs.read().unwrap();
        let first: usize = read[0].split(' ').next().unwrap().parse().unwrap();
        assert!(read.last().unwrap().starts_with("149 ") && first > 0);
        assert_eq!(read.len(), 150 - first, "none is missing between");
    }

    #[test]
    fn a_line_that_is_no_input_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = inputs(&folder);
        inputs.add(&["one".to_owned()]).unwrap();
        let mut file = OpenOptions::new().append(true).open(&inputs.path).unwrap();
        file.write_all(b"\"cut of\n\xff\n17\n").unwrap();
        inputs.add(&["two".to_owned()]).unwrap();
        assert_eq!(inputs.read().unwrap(), ["one", "two"]);
    }
}
