//! A guard as a separate program, for programs that cannot be their own guard (see `Processes::guarded_by`).

fn main() -> std::process::ExitCode {
    safepoint_tools::process::guard_main_if_asked();
    eprintln!("safepoint-guard is started by a Safepoint runtime; there is nothing to run it for by hand");
    std::process::ExitCode::FAILURE
}
