//! `numa doctor`.

use crate::Global;
use anyhow::Context;
use clap::Args;
use numakit_registry::isolate;
use numakit_sensors::checkup::{self, Finding, Process, State};
use numakit_sensors::{Probe, Scene};
use numakit_server::page;
use numakit_session::run_directory;
use numakit_sys::sched;
use numakit_sys::stdio::print;
use numakit_terminal::doctor;
use std::process::ExitCode;

/// Say what is missing here for full measurements, what was seen, and the exact fix
///
/// The exit code is 0 when everything that the machine can give is there, and 1 when something
/// is missing that its fix brings. What only another kernel or machine can give is a note.
///
/// --json gives {"missing": NUMBER, "findings": [{state, about, seen, fix}]}, where state is
/// "ok", "note" or "missing" and fix is empty where all is well.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Looks and says.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let process = root.is_host().then(process).transpose()?;
        let topology = numakit_topology::read(&root).context("the machine cannot be read")?;
        let mut findings =
            checkup::check(&Probe::new(&Scene::new(&root, &topology)), &topology, process.as_ref());
        findings.push(web_page());
        if root.is_host() {
            findings.extend(placing());
        }
        if self.json {
            print(format_args!("{:#}\n", doctor::json(&findings)))?;
        } else {
            print(doctor::text(&findings, numakit_sys::tty::columns()))?;
        }
        Ok(ExitCode::from(u8::from(doctor::count(&findings, State::Missing) > 0)))
    }
}

/// Whether 'numa live' has something to show.
fn web_page() -> Finding {
    let (state, seen, fix) = match page::files() {
        Ok(_) => (State::Ok, "part of this program".to_owned(), ""),
        Err(missing) => (State::Note, format!("built without it: {}", missing.reason), missing.fix),
    };
    Finding { state, about: "web page".into(), seen, fix: fix.into() }
}

/// What 'numa run' needs: a registry of cores, and a library that programs load; and for
/// --isolate, a control group.
fn placing() -> [Finding; 3] {
    let registry = numakit_registry::look().map(|seen| match seen.holdings.len() {
        0 => "no program holds cores".to_owned(),
        1 => "1 program holds cores".to_owned(),
        count => format!("{count} programs hold cores"),
    });
    let library = numakit_preload::lay_down().map(|path| path.display().to_string());
    let group = isolate::possible();
    [
        finding("registry of cores", registry.map_err(|error| error.to_string())),
        finding("library for programs", library.map_err(|error| error.to_string())),
        Finding {
            // Everything else works without.
            state: if group.is_ok() { State::Ok } else { State::Note },
            ..finding("control group for 'numa run --isolate'", group)
        },
    ]
}

/// The errors of both say at their end what fixes them.
fn finding(about: &str, seen: Result<String, String>) -> Finding {
    let (state, (seen, fix)) = match &seen {
        Ok(seen) => (State::Ok, (seen.as_str(), "")),
        Err(error) => (State::Missing, error.rsplit_once("; ").unwrap_or((error, "see the reason"))),
    };
    Finding { state, about: about.to_owned(), seen: seen.to_owned(), fix: fix.to_owned() }
}

fn process() -> anyhow::Result<Process> {
    Ok(Process {
        program: std::env::current_exe().map_or_else(|_| "numa".to_owned(), |p| p.display().to_string()),
        user: std::env::var("USER").unwrap_or_else(|_| "*".to_owned()),
        realtime: sched::may_use_realtime(),
        open_files: sched::raise_open_files().context("the limit of open files cannot be read")?,
        run_directory: run_directory::open().map(|p| p.display().to_string()).map_err(|e| e.to_string()),
    })
}
