//! Commands that are talked to: their input and output as pipes, their errors kept bounded.

use safepoint_tools::process::{CommandSpec, Exit, OutputTarget, Processes, Stdin};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::process::support::{PATIENCE, guarded, unique};

const ERRORS: usize = 4096;

fn talked_to(line: &str) -> CommandSpec {
    CommandSpec::shell(line).stdin(Stdin::Pipe).output(OutputTarget::Pipe { errors: ERRORS })
}

/// S4.9: with and without a guard, what is written is read, and the end of the input is an end.
#[tokio::test]
async fn a_command_is_talked_to_until_its_input_ends() {
    for processes in [guarded("pipes"), Processes::unguarded(unique("pipes"))] {
        let mut process = processes.spawn(talked_to("cat; echo sorry >&2; exit 3")).await.unwrap();
        let (mut stdin, mut stdout) = (process.take_stdin().unwrap(), process.take_stdout().unwrap());
        assert!(process.take_stdin().is_none() && process.take_stdout().is_none(), "they are taken once");
        stdin.write_all(b"hello").await.unwrap();
        let mut said = [0; 5];
        stdout.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"hello");
        drop(stdin);
        let report = tokio::time::timeout(PATIENCE, process.wait()).await.unwrap();
        assert_eq!((report.exit, process.output().text().as_str()), (Exit::Code(3), "sorry\n"));
    }
}

/// A waiting caller reads a flood of errors; its head and tail are kept, and no file is written.
#[tokio::test]
async fn a_flood_of_errors_is_kept_by_its_ends_and_in_no_file() {
    let processes = guarded("pipes");
    let mut process =
        processes.spawn(talked_to("yes flood | head -c 4000000 >&2; echo end >&2")).await.unwrap();
    let report = tokio::time::timeout(PATIENCE, process.wait()).await.unwrap();
    let kept = process.output().captured();
    assert_eq!((report.exit, kept.file, kept.truncated), (Exit::Code(0), None, true));
    assert!(kept.text.len() < 2 * ERRORS && kept.text.ends_with("end\n"), "{}", kept.text.len());
}

/// An output without a reader blocks its command, and no stop.
#[tokio::test]
async fn an_output_that_nobody_reads_delays_no_stop() {
    let processes = guarded("pipes");
    let mut process = processes.spawn(talked_to("yes")).await.unwrap();
    let report = tokio::time::timeout(PATIENCE, process.stop(std::time::Duration::ZERO)).await.unwrap();
    assert!(report.survivors.is_empty());
}
