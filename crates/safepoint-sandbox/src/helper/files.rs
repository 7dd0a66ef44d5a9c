//! What may be read and written, and which processes may be signalled: by Landlock.

use std::{
    fs,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};

use super::{Failed, at, during, namespaces};
use crate::{layers::Layer, opening::Opening, plan::Plan};

/// The version from which files can be confined: before it, any file could be truncated.
const FOR_FILES: ABI = ABI::V3;
/// The version from which processes can be confined.
const FOR_PROCESSES: ABI = ABI::V6;
/// Devices that are no one's.
const DEVICES: [&str; 7] = ["null", "zero", "full", "random", "urandom", "tty", "ptmx"];
/// Standard output and standard error.
const OUTPUTS: [&str; 2] = ["/proc/self/fd/1", "/proc/self/fd/2"];

/// What the kernel has of Landlock.
#[derive(Clone, Copy)]
pub(super) struct Version(ABI);

impl Version {
    pub(super) fn for_files(self) -> Result<(), Failed> {
        self.at_least(FOR_FILES, "Linux 6.2")
    }

    pub(super) fn for_processes(self) -> Result<(), Failed> {
        self.at_least(FOR_PROCESSES, "Linux 6.12")
    }

    fn at_least(self, wanted: ABI, since: &str) -> Result<(), Failed> {
        if self.0 >= wanted {
            return Ok(());
        }
        let (found, wanted) = (self.0 as i32, wanted as i32);
        Err(Failed(format!(
            "Landlock has version {found} here, and this takes {wanted}, which came with {since}"
        )))
    }
}

/// Finds the version, by confining this process to what it needs for nothing.
pub(super) fn version() -> Result<Version, Failed> {
    let of = |error: RulesetError| during("use Landlock")(error);
    let ruleset = Ruleset::default().handle_access(AccessFs::MakeBlock).map_err(of)?;
    let status = ruleset.create().and_then(RulesetCreated::restrict_self).map_err(of)?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => Ok(Version(effective_abi)),
        LandlockStatus::NotEnabled => {
            Err(Failed("Landlock is not enabled: see /sys/kernel/security/lsm".into()))
        }
        LandlockStatus::NotImplemented => Err(Failed("this kernel has no Landlock".into())),
    }
}

/// Confines this process and all that it starts.
pub(super) fn confine(plan: &Plan) -> Result<(), Failed> {
    if !confines_files(plan) && !plan.holds(Layer::Processes) {
        return Ok(());
    }
    let mut ruleset = ruleset(plan).map_err(during("use Landlock"))?;
    if confines_files(plan) {
        ruleset = rules(plan).into_iter().try_fold(ruleset, allow)?;
    }
    ruleset.restrict_self().map(drop).map_err(during("use Landlock"))
}

fn confines_files(plan: &Plan) -> bool {
    plan.holds(Layer::Files) && plan.opening != Some(Opening::Files)
}

/// What is forbidden unless a rule allows it. The layers were found to be there, so they are asked for as such.
fn ruleset(plan: &Plan) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    if confines_files(plan) {
        ruleset = ruleset.handle_access(written() | AccessFs::ReadFile | AccessFs::ReadDir)?;
        // Of no use before: a device could not be opened.
        ruleset = ruleset.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::IoctlDev)?;
    }
    if plan.holds(Layer::Processes) {
        ruleset =
            ruleset.set_compatibility(CompatLevel::HardRequirement).scope(Scope::from_all(FOR_PROCESSES))?;
    }
    Ok(ruleset.create()?.set_compatibility(CompatLevel::BestEffort))
}

fn written() -> BitFlags<AccessFs> {
    AccessFs::from_write(FOR_FILES)
}

/// One rule: what is allowed below a path.
struct Allowed {
    path: PathBuf,
    access: BitFlags<AccessFs>,
}

fn rules(plan: &Plan) -> Vec<Allowed> {
    // The names of everything; the content of everything but devices. New entries of `/` come with the next command.
    let mut rules = vec![Allowed { path: "/".into(), access: AccessFs::ReadDir.into() }];
    let top = fs::read_dir("/").into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let top = top.filter(|path| path != Path::new("/dev"));
    rules.extend(top.map(|path| Allowed { path, access: AccessFs::ReadFile.into() }));
    let used = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    rules.extend(DEVICES.iter().map(|name| Allowed { path: Path::new("/dev").join(name), access: used }));
    // No device can be made in them.
    let changed = (written() & !(AccessFs::MakeChar | AccessFs::MakeBlock)) | used;
    let mut changes: Vec<PathBuf> = plan.write.iter().chain([&plan.temporary]).cloned().collect();
    if plan.holds(Layer::Namespaces) {
        changes.push(namespaces::TERMINALS.into());
        changes.extend(namespaces::has_own_memory(plan).then(|| namespaces::SHARED_MEMORY.into()));
    }
    rules.extend(changes.into_iter().map(|path| Allowed { path, access: changed }));
    // A script opens `/dev/stderr` anew, which may be a file.
    let outputs = OUTPUTS.iter().filter(|path| fs::metadata(path).is_ok_and(|found| found.is_file()));
    rules.extend(
        outputs.map(|path| Allowed { path: path.into(), access: AccessFs::WriteFile | AccessFs::Truncate }),
    );
    rules
}

/// Adds a rule. What is not there needs none.
fn allow(ruleset: RulesetCreated, Allowed { path, access }: Allowed) -> Result<RulesetCreated, Failed> {
    let Ok(found) = fs::metadata(&path) else { return Ok(ruleset) };
    let access = if found.is_dir() { access } else { access & AccessFs::from_file(ABI::V5) };
    let Ok(open) = PathFd::new(&path) else { return Ok(ruleset) };
    let rule = PathBeneath::new(open, access);
    ruleset.add_rule(rule).map_err(|error| at("confine files to", &path)(std::io::Error::other(error)))
}
