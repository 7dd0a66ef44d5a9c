//! `safepoint practice`: the scripted model server as a process.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use safepoint_testkit::{
    script::Script,
    server::{KeptExchanges, ModelServer, ServerLog, ServerOptions},
};

use crate::{
    args::{practice::PracticeArgs, run::OnDisconnect},
    exit::Usage,
    output,
    signals::Signals,
};

/// Serves until a signal.
pub(crate) async fn practice(args: PracticeArgs) -> anyhow::Result<ExitCode> {
    let script = match &args.script {
        None => Script::practice(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Usage(format!("the script {} cannot be read: {error}", path.display())))?;
            Script::from_json(&text)
                .map_err(|error| Usage(format!("invalid script {}: {error}", path.display())))?
        }
    };
    let created = |path: &PathBuf| {
        std::fs::File::create(path)
            .map_err(|error| Usage(format!("the log {} cannot be written: {error}", path.display())))
    };
    let file = args.log.as_ref().map(created).transpose()?;
    let log = file.map(|file| ServerLog::to(move |line| write_line(&file, &line)));
    // What is asked goes to the log, if anywhere: a server that runs for days must not keep it all.
    let options = ServerOptions { log, recording: KeptExchanges::Off, ..ServerOptions::default() };
    let server = ModelServer::start_with(script, options, args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = server.address();
    output::say_json(serde_json::json!({ "listening": format!("http://{address}") }))?;
    output::tell(format_args!(
        "try: safepoint run --base-url http://{address}/v1 --model openai:practice \"hello\""
    ));
    Signals::listen(OnDisconnect::Stop)?.next().await;
    Ok(ExitCode::SUCCESS)
}

/// Writes a line in one piece, so that a concurrent reader of the file sees whole lines.
fn write_line(mut file: &std::fs::File, line: &serde_json::Value) {
    if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
        output::tell(format_args!("the log cannot be written: {error}"));
    }
}
