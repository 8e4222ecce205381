//! Recordings and results of `numa explain` in the page: served, or in a file.

use crate::page::{self, ServeArgs};
use crate::peaks;
use anyhow::Context;
use clap::Args;
use numakit_findings::comparison::explained::saved::{self, SavedResult};
use numakit_findings::explained::JudgedReport;
use numakit_findings::shown_kind::ShownKind;
use numakit_formulas::Catalog;
use numakit_model::CpuSet;
use numakit_observation::{ObservationStatus, interval};
use numakit_server::opening::{self, Opener};
use numakit_server::results::{self, ShownResult};
use numakit_server::wire::OpeningInfo;
use numakit_server::{recordings, standalone};
use numakit_sys::signal::{self, Signals};
use numakit_sys::stdio::{note, print, replace_line};
use numakit_sys::{SysRoot, poll, tty};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Where the page is shown.
#[derive(Debug, Args)]
pub(super) struct PageArgs {
    /// Show it in a web page, until Ctrl-C
    #[arg(long)]
    page: bool,
    /// Write the page and what it shows to this HTML file, which needs no server
    #[arg(long, value_name = "OUT", conflicts_with_all = ["listen", "no_open", "trusted_host", "base_path", "tls_cert", "tls_key"])]
    pub(super) html: Option<PathBuf>,
    /// Maximum size of the HTML file; longer recordings are downsampled [default: 16MiB]
    #[arg(long, value_name = "SIZE", value_parser = file_size, requires = "html")]
    pub(super) size: Option<usize>,
    /// Replace the HTML file if it exists
    #[arg(long, requires = "html")]
    force: bool,
}

/// The default of --size.
const SIZE: usize = 16 << 20;
/// How often clients get a status message.
const STATUS_PERIOD: Duration = Duration::from_secs(1);
/// Recordings of fewer bytes are opened before the addresses are printed, so that a program that reads these
/// can ask for samples at once.
const SMALL: u64 = 1 << 20;

impl PageArgs {
    /// Whether the page is shown, and no text.
    pub(super) fn is_asked(&self) -> bool {
        self.page || self.html.is_some()
    }

    /// Whether a server shows it.
    pub(super) fn is_served(&self) -> bool {
        self.page && self.html.is_none()
    }

    /// Serves the page, or writes it to a file. The files are all of this kind.
    pub(super) fn show(
        &self,
        files: &[PathBuf],
        kind: ShownKind,
        serve: &ServeArgs,
        formulas: Catalog,
    ) -> anyhow::Result<ExitCode> {
        let formulas = Arc::new(formulas);
        let (recordings, results) = match kind {
            ShownKind::Explained => {
                (&[][..], files.iter().map(|file| result(file)).collect::<Result<_, _>>()?)
            }
            ShownKind::Recording | ShownKind::Bench => (files, Vec::new()),
        };
        match &self.html {
            Some(out) if kind == ShownKind::Explained => write_results(out, self.force, &results),
            Some(out) => self.write(out, recordings, serve.history, &formulas),
            None => served(recordings, results, serve, formulas),
        }
    }

    fn write(
        &self,
        out: &Path,
        files: &[PathBuf],
        history: usize,
        formulas: &Arc<Catalog>,
    ) -> anyhow::Result<ExitCode> {
        standalone::check(out, self.force)?;
        let mut opened = Vec::with_capacity(files.len());
        for file in files {
            let name = file.display().to_string();
            let recording = recordings::read(file, &name, history, formulas)?;
            if let Some(damage) = &recording.damage {
                note(damage);
            }
            opened.push(recording);
        }
        let size = self.size.unwrap_or(SIZE) as u64;
        let written = standalone::write(out, self.force, size, &opened, peaks::add_to_recording)?;
        let parts = opened.iter().zip(&written.steps).map(|(recording, step)| match step {
            None => format!("every sample of {}", recording.info.name),
            Some(ns) => {
                let step = interval::format(Duration::from_nanos(*ns));
                format!("{} downsampled to buckets of {step}", recording.info.name)
            }
        });
        let size = written.bytes as f64 / 1_048_576.0;
        let parts = parts.collect::<Vec<_>>().join("; ");
        print(format_args!("wrote {}: {size:.1} MiB, {parts}\n", out.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Serves the page until a signal arrives.
fn served(
    shown: &[PathBuf],
    results: Vec<ShownResult>,
    serve: &ServeArgs,
    formulas: Arc<Catalog>,
) -> anyhow::Result<ExitCode> {
    opening::check(shown)?;
    let host = page::host_name(&SysRoot::host())?;
    let listener = serve.listener(&host)?;
    let signals = Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])
        .context("cannot collect signals")?;
    signal::ignore_broken_pipe();
    let urls = listener.urls();
    let server = listener.start(None, Arc::clone(&formulas), serve.history, CpuSet::new())?;
    server.hub().show_results(results);
    server.hub().complete_headers(peaks::add_to_recording);
    let small = bytes(shown) <= SMALL;
    if small {
        opening::open_all(server.hub(), shown, &formulas, &AtomicBool::new(false), &mut |_| ())?;
    } else {
        server.hub().set_opening(opening::waiting(shown));
    }
    let _launcher = serve.announce(&urls, &host)?;
    // After the addresses, so that they do not stand in the line of the progress.
    let mut opener = None;
    if !small {
        let (hub, files) = (Arc::clone(server.hub()), shown.to_vec());
        opener = Some(Opener::start(hub, files, formulas, progress).context("cannot start a thread")?);
    }
    while signals.next().is_none() {
        poll::readable(&[signals.as_fd()], Some(STATUS_PERIOD)).context("cannot wait")?;
        opener.as_mut().map_or(Ok(()), Opener::check)?;
        server.hub().set_status(&ObservationStatus::default());
    }
    Ok(ExitCode::SUCCESS)
}

/// The size of all files; those that cannot be read are refused elsewhere.
fn bytes(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| file.metadata().map_or(0, |data| data.len())).sum()
}

/// Shows on the terminal how much of a recording was read, on one line that disappears at the end.
fn progress(opening: Option<&OpeningInfo>) {
    if !tty::is_error() {
        return;
    }
    match opening {
        // The name without its folder, so that the line is not wrapped.
        Some(OpeningInfo { name, percent }) => {
            let name = Path::new(name).file_name().unwrap_or_default().display();
            replace_line(Some(&format!("Opening {name}: {percent} %")));
        }
        None => replace_line(None),
    }
}

fn result(file: &Path) -> anyhow::Result<ShownResult> {
    let text = saved::read(file)?;
    SavedResult::parse(file, &text)?;
    // The page knows the names of this version. A result that lacks members is shown as it is.
    let json = match JudgedReport::parse(file, &text) {
        Ok(report) => serde_json::to_string(&report).context("cannot write JSON")?,
        Err(_) => String::from_utf8(text).with_context(|| format!("{} is not UTF-8", file.display()))?,
    };
    Ok(ShownResult { name: file.display().to_string(), json })
}

fn write_results(out: &Path, force: bool, shown: &[ShownResult]) -> anyhow::Result<ExitCode> {
    let bytes = results::write(out, force, shown)?;
    let names: Vec<&str> = shown.iter().map(|result| result.name.as_str()).collect();
    print(format_args!("wrote {}: {} KiB, {}\n", out.display(), bytes.div_ceil(1024), names.join("; ")))?;
    Ok(ExitCode::SUCCESS)
}

fn file_size(text: &str) -> Result<usize, String> {
    page::size(text, "1MiB", 1 << 20..=1 << 30)
}
