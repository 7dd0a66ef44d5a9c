//! `safepoint mcp add` and `rm`: edits of the config file that leave the rest of it as it is, comments included.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

use crate::{
    args::mcp::{AddArgs, FileArgs, RmArgs},
    exit::{self, Usage, code},
    output,
    settings::{
        config::{Config, user_file},
        project_files::{FOLDER, ProjectPlace},
    },
};

/// The table of the servers.
const SERVERS: &str = "mcp";

/// Adds a server.
///
/// # Errors
/// If it cannot be one, there is one of that name, or the file cannot be edited.
pub(crate) fn add(args: &AddArgs) -> anyhow::Result<ExitCode> {
    let name = &args.name;
    if !is_server_name(name) {
        return Err(Usage(format!(
            "{name}: a server's name has up to 32 letters, digits, `-` and single `_`"
        ))
        .into());
    }
    let path = file(&args.file)?;
    let mut document = read(&path)?;
    let servers = servers(&mut document, &path)?;
    if servers.contains_key(name) && !args.replace {
        let why = format!("{} has [mcp.{name}]; --replace writes it anew", path.display());
        return Err(Usage(why).into());
    }
    servers.insert(name, Item::Table(entry(args)?));
    let text = document.to_string();
    let config = Config::read(path.clone(), &text)?;
    config.mcp.check(name)?;
    write(&path, &text)?;
    output::say(format!("added [mcp.{name}] to {}; `safepoint mcp ls {name}` tries it", path.display()))?;
    if args.file.project {
        output::say("it is started once `safepoint config trust` has taken the project's file")?;
    }
    Ok(exit::with(code::ACCEPTED))
}

/// Removes a server.
///
/// # Errors
/// If there is no such server, or the file cannot be edited.
pub(crate) fn rm(args: &RmArgs) -> anyhow::Result<ExitCode> {
    let (name, path) = (&args.name, file(&args.file)?);
    let mut document = read(&path)?;
    if servers(&mut document, &path)?.remove(name).is_none() {
        return Err(Usage(format!("{} has no [mcp.{name}]", path.display())).into());
    }
    write(&path, &document.to_string())?;
    output::say(format!("removed [mcp.{name}] from {}", path.display()))?;
    Ok(exit::with(code::ACCEPTED))
}

/// The entry as it is written.
fn entry(args: &AddArgs) -> Result<Table, Usage> {
    let mut table = Table::new();
    let Some((first, rest)) = args.command.split_first() else {
        return Err(Usage("name an address, or a program behind `--`".into()));
    };
    let is_address = first.starts_with("http://") || first.starts_with("https://");
    match (is_address, rest) {
        (true, []) => {
            table.insert("url", value(first));
        }
        (true, [flag, ..]) if flag.starts_with('-') => {
            let name = &args.name;
            return Err(Usage(format!(
                "{flag} stands behind the address: write safepoint mcp add [FLAGS] {name} {first}"
            )));
        }
        (true, _) => return Err(Usage(format!("{first}: an address has no arguments"))),
        (false, rest) => {
            table.insert("command", value(first));
            if !rest.is_empty() {
                table.insert("args", value(rest.iter().collect::<Array>()));
            }
        }
    }
    for (key, pairs) in [("env", &args.env), ("headers", &args.headers)] {
        if pairs.is_empty() {
            continue;
        }
        let mut inline = InlineTable::new();
        for pair in pairs {
            let (name, text) =
                pair.split_once(['=', ':']).filter(|(name, _)| !name.trim().is_empty()).ok_or_else(|| {
                    Usage(format!(
                        "--{}: write NAME=VALUE, such as TOKEN='${{TOKEN}}'",
                        key.trim_end_matches('s')
                    ))
                })?;
            inline.insert(name.trim(), text.trim_start().into());
        }
        table.insert(key, value(inline));
    }
    Ok(table)
}

/// The file that is edited: where it is a link, what that leads to.
fn file(args: &FileArgs) -> anyhow::Result<PathBuf> {
    let path = match (&args.config, args.project) {
        (Some(path), _) => path.clone(),
        (None, true) => {
            let around = ProjectPlace::around(None).context("the working directory cannot be used")?;
            let new = || around.root().join(FOLDER);
            around.settings_folder().unwrap_or_else(new).join("config.toml")
        }
        (None, false) => user_file().ok_or_else(|| {
            Usage("there is no home directory for the config file; name one with --config".into())
        })?,
    };
    Ok(path.canonicalize().unwrap_or(path))
}

fn read(path: &Path) -> anyhow::Result<DocumentMut> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("the config {} cannot be read", path.display()))?,
    };
    let wrong =
        |why: toml_edit::TomlError| Usage(format!("invalid config {}; fix it first\n{why}", path.display()));
    Ok(text.parse().map_err(wrong)?)
}

/// The servers of the file.
fn servers<'a>(document: &'a mut DocumentMut, path: &Path) -> Result<&'a mut Table, Usage> {
    let table = document.entry(SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        // `[mcp.NAME]` alone is written.
        table.set_implicit(true);
        Item::Table(table)
    });
    let why = format!("`mcp` of {} is not written as [mcp.NAME]; edit it by hand", path.display());
    table.as_table_mut().ok_or(Usage(why))
}

/// Writes the whole file at once: a reader sees the one or the other.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let cannot = || format!("the config {} cannot be written", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(cannot)?;
    let beside = folder.join(format!(".config.{}.tmp", std::process::id()));
    let written = (|| {
        // It may hold secrets.
        let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        if let Ok(was) = fs::metadata(path) {
            file.set_permissions(was.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() && fs::remove_file(&beside).is_err() {
        // It was never made.
    }
    written.with_context(cannot)
}

/// As the client of the servers wants it.
fn is_server_name(name: &str) -> bool {
    const LONGEST: usize = 32;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    (1..=LONGEST).contains(&name.len()) && name.chars().all(fits) && !name.contains("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_to(path: &Path, name: &str, command: &[&str], env: &[&str]) -> anyhow::Result<ExitCode> {
        let file = FileArgs { config: Some(path.to_owned()), project: false };
        let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let args = AddArgs {
            name: name.to_owned(),
            command: strings(command),
            env: strings(env),
            headers: Vec::new(),
            replace: false,
            file,
        };
        add(&args)
    }

    #[test]
    fn a_flag_behind_an_address_is_told_where_it_goes() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.toml");
        let error = add_to(&path, "tickets", &["https://example.com/mcp", "--project"], &[]).unwrap_err();
        assert!(
            error.to_string().contains("safepoint mcp add [FLAGS] tickets https://example.com/mcp"),
            "{error}"
        );
        assert!(!path.exists());
    }

    /// S12.62: an edit leaves every other byte of the file as it is.
    #[test]
    fn an_edit_leaves_comments_and_all_else_as_they_are() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.toml");
        let before = "# mine\nmodel = 'openai:x' # because\n\n[mcp.old] # it stays\ncommand = \"a\"\n";
        fs::write(&path, before).unwrap();
        add_to(&path, "files", &["npx", "-y", "server"], &["TOKEN=${TOKEN}"]).unwrap();
        let after = fs::read_to_string(&path).unwrap();
        assert!(after.starts_with(before), "{after}");
        assert!(
            after.contains(
                "[mcp.files]\ncommand = \"npx\"\nargs = [\"-y\", \"server\"]\nenv = { TOKEN = \"${TOKEN}\" }"
            ),
            "{after}"
        );
        assert!(add_to(&path, "files", &["x"], &[]).unwrap_err().to_string().contains("--replace"));
        let file = FileArgs { config: Some(path.clone()), project: false };
        rm(&RmArgs { name: "files".into(), file: file.clone() }).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        assert!(rm(&RmArgs { name: "files".into(), file }).is_err());
    }

    #[test]
    fn what_could_be_no_server_is_refused_and_nothing_is_written() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.toml");
        for (name, command) in [("a b", &["x"][..]), ("a__b", &["x"]), ("a", &[]), ("a", &["http://x/", "y"])]
        {
            assert!(add_to(&path, name, command, &[]).is_err(), "{name}");
        }
        assert!(!path.exists());
        add_to(&path, "web", &["https://example.com/mcp"], &[]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "[mcp.web]\nurl = \"https://example.com/mcp\"\n");
    }
}
