//! What is looked at: each check is a function, and none changes anything.

use std::{
    env,
    io::IsTerminal as _,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::future::join_all;
use safepoint_models::PROVIDERS;
use safepoint_tools::process::Processes;
use tokio::time::timeout;

use super::Finding;
use crate::{
    args::config::PlaceArgs,
    control,
    output::Stream,
    settings::{
        config::{self, Config},
        project_files::{ProjectPlace, ProjectText, config::ProjectConfig},
        sandbox, secrets,
        store::{unchanged, usual_place},
    },
    visible::one_line,
};

/// A server of tools that is not there after so long is named as that.
const PATIENCE: Duration = Duration::from_secs(20);
/// Letters of what others say.
const SAID: usize = 200;

/// All of them, in the order of what depends on what.
pub(super) async fn all(place: &PlaceArgs) -> Vec<Finding> {
    let config = Config::load(place.config.as_deref());
    let mut found = vec![program(), files(place, &config)];
    let config = config.unwrap_or_default();
    found.extend(project(place));
    found.extend(model(&config));
    found.push(store().await);
    found.push(socket());
    found.extend(sandbox(place).await);
    found.push(terminal());
    found.extend(programs());
    found.extend(servers(&config).await);
    found
}

fn program() -> Finding {
    let path =
        env::current_exe().map_or_else(|_lost| "unknown".to_owned(), |path| path.display().to_string());
    Finding::ok("program", format_args!("safepoint {}, {path}", env!("CARGO_PKG_VERSION")))
}

fn files(place: &PlaceArgs, config: &anyhow::Result<Config>) -> Finding {
    let named = config::place(place.config.as_deref());
    let named = named.trim_end_matches(',').to_owned();
    match config {
        Ok(_) => Finding::ok("config", named),
        Err(error) => Finding::broken("config", format_args!("{error:#}"), "correct the file, or remove it"),
    }
}

fn project(place: &PlaceArgs) -> Vec<Finding> {
    let around = match ProjectPlace::around(place.root.as_deref()) {
        Ok(around) => around,
        Err(error) => {
            let remedy = "name another one with --root, or change into one";
            return vec![Finding::broken(
                "project",
                format_args!("the working directory cannot be used: {error}"),
                remedy,
            )];
        }
    };
    let text = ProjectText::read(&around);
    let files = match text.instructions.files().len() {
        0 => "no AGENTS.md".to_owned(),
        1 => "one file of instructions".to_owned(),
        many => format!("{many} files of instructions"),
    };
    let said = format!(
        "{}, {files}, {} own commands, {} agents",
        around.root().display(),
        text.commands.list().count(),
        text.agents.len()
    );
    let mut found = vec![Finding::ok("project", said)];
    let notes = match around.config().map(|path| ProjectConfig::read(&path, around.root())) {
        Some(Ok(project)) => project.notes(),
        Some(Err(why)) => vec![why],
        None => Vec::new(),
    };
    let remedy = "`safepoint config` shows what holds";
    found.extend(notes.into_iter().chain(text.notes).map(|note| Finding::note("project", note, remedy)));
    found
}

/// Which keys there are: their values are nowhere shown.
fn model(config: &Config) -> Vec<Finding> {
    let is_set = |variable: &str| env::var(variable).is_ok_and(|value| !value.is_empty());
    let with_key: Vec<String> = PROVIDERS
        .iter()
        .filter_map(|provider| {
            let variable = provider.key_variables().iter().find(|variable| is_set(variable))?;
            Some(format!("{} ({variable})", provider.name()))
        })
        .collect();
    let usual = "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or write api_key_env into the config file; \
                 `safepoint` alone works with the practice model";
    let keys = match with_key.is_empty() {
        true => Finding::note("keys", "no key of a provider is set", usual),
        false => Finding::ok("keys", with_key.join(", ")),
    };
    let Some(named) = config.model() else { return vec![keys] };
    let provider = named.split(':').next().unwrap_or_default();
    let Some(provider) = PROVIDERS.iter().find(|known| known.name() == provider) else {
        let known: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name()).collect();
        let remedy = format!("write PROVIDER:NAME; the providers are {}", known.join(", "));
        return vec![
            keys,
            Finding::broken("model", format_args!("{} names no provider", one_line(named, SAID)), remedy),
        ];
    };
    let variables = provider.key_variables();
    let has_key = match config.api_key_env() {
        Some(variable) => is_set(variable),
        None => variables.is_empty() || variables.iter().any(|variable| is_set(variable)),
    };
    let needs = config.api_key_env().map_or_else(|| variables.join(" or "), str::to_owned);
    let model = match has_key {
        true => Finding::ok("model", one_line(named, SAID)),
        false => {
            let why = format!("{} has no key", one_line(named, SAID));
            Finding::broken("model", why, format!("set {needs}"))
        }
    };
    vec![keys, model]
}

async fn store() -> Finding {
    let place = match usual_place() {
        Ok(place) => place,
        Err(error) => return Finding::broken("store", error, "set HOME or XDG_DATA_HOME"),
    };
    let (shown, is_file) = (place.to_string(), place.file().is_some());
    match unchanged(place).await {
        Ok(Some(_)) => Finding::ok("store", shown),
        Ok(None) => Finding::ok("store", format_args!("{shown}, made by the first stored session")),
        Err(error) if is_file => Finding::broken(
            "store",
            format_args!("{error:#}"),
            "`safepoint store check` says what is wrong with it",
        ),
        Err(error) => Finding::broken(
            "store",
            format_args!("{error:#}"),
            "docs/guides/postgres.md says what a database needs; where it can be reached, `safepoint store migrate` makes its tables",
        ),
    }
}

fn socket() -> Finding {
    match control::folder() {
        Ok(folder) => Finding::ok("control", folder.display()),
        Err(error) => Finding::broken(
            "control",
            format_args!("{error:#}"),
            "other terminals cannot steer or stop without it",
        ),
    }
}

async fn sandbox(place: &PlaceArgs) -> Vec<Finding> {
    let layers = Processes::new(format!("doctor_{}", uuid::Uuid::now_v7().simple())).layers().await;
    let remedy = "commands ask before they run; docs/guides/sandbox.md says what each part needs";
    if layers.is_complete() {
        let root = place.root.clone().map_or_else(env::current_dir, Ok);
        let lacks = root.ok().and_then(|root| sandbox::lacks(&root, &layers));
        return vec![match lacks {
            None => Finding::ok("sandbox", "files, processes, sockets and a separate network"),
            Some(why) => Finding::note("sandbox", why, remedy),
        }];
    }
    layers
        .missing()
        .iter()
        .map(|why| Finding::note("sandbox", format_args!("not enforced: {why}"), remedy))
        .collect()
}

fn terminal() -> Finding {
    let term = env::var("TERM").unwrap_or_default();
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|it| !it.is_empty()));
    let is_utf8 = locale.as_ref().is_some_and(|it| it.to_lowercase().replace('-', "").contains("utf8"));
    let is_plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = match (
        is_plain,
        env::var("COLORTERM").is_ok_and(|it| it.contains("truecolor") || it.contains("24bit")),
    ) {
        (true, _) => "no colours (NO_COLOR)",
        (false, true) => "all colours",
        (false, false) => "basic colours",
    };
    if !std::io::stdin().is_terminal() || !Stream::Out.is_terminal() {
        return Finding::note("terminal", "none here", "a chat without one reads one message a line");
    }
    if term.is_empty() || term == "dumb" {
        return Finding::note(
            "terminal",
            format_args!("TERM={term}"),
            "a chat here reads one message a line; set TERM for a screen",
        );
    }
    if !is_utf8 {
        let remedy = "set LANG to one that ends with UTF-8, such as C.UTF-8, if letters are wrong";
        return Finding::note("terminal", format_args!("{term}, {colours}, no UTF-8 locale"), remedy);
    }
    Finding::ok("terminal", format_args!("{term}, {colours}, UTF-8"))
}

/// Programs that are started on request.
fn programs() -> Vec<Finding> {
    let named = |variables: &[&str], usual: &str| {
        let set = variables.iter().find_map(|name| env::var(name).ok().filter(|it| !it.trim().is_empty()));
        set.unwrap_or_else(|| usual.to_owned())
    };
    let of = |what: &'static str, command: String, remedy: &str| {
        let program = command.split_whitespace().next().unwrap_or_default().to_owned();
        match on_path(&program) {
            Some(path) => Finding::ok(what, path.display()),
            None => Finding::note(what, format_args!("{} is not found", one_line(&program, SAID)), remedy),
        }
    };
    vec![
        of("git", "git".to_owned(), "install git, if the agent is to use it"),
        of("pager", named(&["PAGER"], "less"), "set PAGER, or install less, for long texts"),
        of("editor", named(&["VISUAL", "EDITOR"], "vi"), "set EDITOR, to edit messages in it"),
    ]
}

/// The file of a program, by its path or by PATH.
fn on_path(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let runs =
        |path: &Path| path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| runs(path));
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| runs(path))
}

async fn servers(config: &Config) -> Vec<Finding> {
    crate::output::hide(secrets::known_with(&config.mcp));
    let processes = Processes::new(format!("doctor_{}", uuid::Uuid::now_v7().simple()));
    let names: Vec<String> = config.mcp.names().map(str::to_owned).collect();
    let each = names.into_iter().map(|name| {
        let server = config.mcp.one(&name).map(|server| server.under(&processes));
        async move {
            let remedy =
                format!("`safepoint mcp ls {name}` tries it alone; `safepoint mcp rm {name}` takes it out");
            let server = match server {
                Ok(server) => server,
                Err(error) => return Finding::broken("mcp", error, remedy),
            };
            let looked = timeout(PATIENCE, async {
                let client = server.connect().await?;
                let offer = client.offer().await?;
                client.close().await;
                Ok::<_, safepoint_tools::mcp::McpError>(offer.tools.len())
            });
            match looked.await {
                Ok(Ok(tools)) => Finding::ok("mcp", format_args!("{name}, {tools} tools")),
                Ok(Err(error)) => Finding::broken("mcp", one_line(&error.to_string(), SAID), remedy),
                Err(_elapsed) => {
                    Finding::broken("mcp", format_args!("{name} did not answer within {PATIENCE:?}"), remedy)
                }
            }
        }
    });
    join_all(each).await
}
