//! How a target is had: by name from a registry, into a folder for it alone.

use std::{fs, path::Path, process::Command};

use super::{
    super::{Absent, mcp::quietly, node},
    recipe::{Project, Recipe},
};

/// Installs it, unless it is there.
pub(super) fn install(recipe: &Recipe, here: &Path, cache: &Path) -> Result<(), Absent> {
    fs::create_dir_all(cache)
        .map_err(|error| Absent(format!("{} cannot be made: {error}", cache.display())))?;
    let how = &recipe.install;
    if !how.node.is_empty() {
        let packages: Vec<&str> = how.node.iter().map(String::as_str).collect();
        node::install_all(&packages, cache)?;
        copy(here, cache)?;
    }
    if !how.python.is_empty() {
        python(&how.python, cache)?;
    }
    let (program, args) = match how.project {
        None | Some(Project::Own) => return Ok(()),
        Some(Project::Go) => ("go", &["build", "-o", "adapter", "."][..]),
        Some(Project::Maven) => ("mvn", &["-q", "-B", "package"][..]),
        Some(Project::Cargo) => ("cargo", &["build", "--release", "--target-dir", "target"][..]),
    };
    copy(here, cache)?;
    quietly(Command::new(program).args(args).current_dir(cache), program)
}

fn python(packages: &[String], cache: &Path) -> Result<(), Absent> {
    let interpreter = cache.join("venv/bin/python");
    if !interpreter.exists() {
        quietly(Command::new("python3").args(["-m", "venv"]).arg(cache.join("venv")), "python3 -m venv")?;
    }
    let (stamp, wanted) = (cache.join("installed"), packages.join(" "));
    if fs::read_to_string(&stamp).is_ok_and(|known| known == wanted) {
        return Ok(());
    }
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    quietly(&mut pip, "pip install")?;
    fs::write(&stamp, wanted)
        .map_err(|error| Absent(format!("{} cannot be written: {error}", stamp.display())))
}

/// The files of the recipe, where its packages are.
fn copy(from: &Path, to: &Path) -> Result<(), Absent> {
    let absent = |error: std::io::Error| Absent(format!("{} cannot be copied: {error}", from.display()));
    fs::create_dir_all(to).map_err(absent)?;
    for entry in fs::read_dir(from).map_err(absent)? {
        let entry = entry.map_err(absent)?;
        let (source, place) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &place)?;
        } else {
            fs::copy(&source, &place).map_err(absent)?;
        }
    }
    Ok(())
}
