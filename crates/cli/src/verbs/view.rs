//! `numa view`.

use crate::formulas::FormulaArgs;
use crate::global::OF_A_RECORDING;
use crate::page::{self, ServeArgs};
use crate::peaks;
use crate::{Examples, GlobalArgs};
use anyhow::Context;
use clap::Args;
use numakit_findings::comparison::explained::saved::{self, SavedResult};
use numakit_formulas::Catalog;
use numakit_model::CpuSet;
use numakit_observation::{ObservationStatus, interval};
use numakit_server::opening::{self, Opener};
use numakit_server::results::{self, ShownResult};
use numakit_server::wire::OpeningInfo;
use numakit_server::{recordings, standalone};
use numakit_sys::file::open_to_read;
use numakit_sys::signal::{self, Signals};
use numakit_sys::stdio::{note, print, replace_line};
use numakit_sys::{SysRoot, poll, tty};
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Show recordings, or results of 'numa explain', in a web page
///
/// Recordings of 'numa record' and the JSON of NUMAscope can be shown, or what 'numa explain --json' wrote. The page is
/// served until a signal arrives (Ctrl-C). Labels that are edited in the page are not saved to the recording.
/// With --html there is no server: the page and the recordings are written to one HTML file.
#[derive(Debug, Args)]
pub struct ViewArgs {
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    formulas: FormulaArgs,
    /// The recordings, or the results
    #[arg(required = true, value_name = "FILE")]
    recordings: Vec<PathBuf>,
    /// Write the page and the recordings to this HTML file, which needs no server
    #[arg(long, value_name = "OUT", conflicts_with_all = ["listen", "no_open", "trusted_host", "base_path", "tls_cert", "tls_key"])]
    html: Option<PathBuf>,
    /// Maximum size of the HTML file; longer recordings are downsampled
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = file_size, requires = "html")]
    size: usize,
    /// Replace the HTML file if it exists
    #[arg(long, requires = "html")]
    force: bool,
}

/// How often clients get a status message.
const STATUS_PERIOD: Duration = Duration::from_secs(1);
/// Recordings of fewer bytes are opened before the addresses are printed, so that a program that reads these
/// can ask for samples at once.
const SMALL: u64 = 1 << 20;

impl ViewArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa view numa-1.arrows", "shows it in a browser"),
        ("numa view numa-1.arrows --html page.html", "writes a page that needs no server"),
    ];

    /// Serves the page, or writes it to a file.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        let formulas = Arc::new(self.formulas.load()?);
        let results = self.results()?;
        if let Some(out) = &self.html {
            if let Some(results) = &results {
                return write_results(out, self.force, results);
            }
            return self.write(out, &formulas);
        }
        let shown = if results.is_some() { &[] } else { self.recordings.as_slice() };
        opening::check(shown)?;
        let host = page::host_name(&SysRoot::host())?;
        let listener = self.serve.listener(&host)?;
        let signals = Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])
            .context("cannot collect signals")?;
        signal::ignore_broken_pipe();
        let urls = listener.urls();
        let server = listener.start(None, Arc::clone(&formulas), self.serve.history, CpuSet::new())?;
        server.hub().show_results(results.unwrap_or_default());
        server.hub().complete_headers(peaks::add_to_recording);
        let small = bytes(shown) <= SMALL;
        if small {
            opening::open_all(server.hub(), shown, &formulas, &AtomicBool::new(false), &mut |_| ())?;
        } else {
            server.hub().set_opening(opening::waiting(shown));
        }
        let _launcher = self.serve.announce(&urls, &host)?;
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
    /// The files as results of 'numa explain'; `None` if they are recordings.
    fn results(&self) -> anyhow::Result<Option<Vec<ShownResult>>> {
        let is_result: Vec<bool> = self.recordings.iter().map(|file| starts_like_result(file)).collect();
        if !is_result.contains(&true) {
            return Ok(None);
        }
        if let Some(at) = is_result.iter().position(|is_result| !is_result) {
            anyhow::bail!(
                "{} is not a result of 'numa explain', but another file is: show recordings and results separately",
                self.recordings[at].display()
            );
        }
        self.recordings.iter().map(|file| result(file)).collect::<anyhow::Result<_>>().map(Some)
    }

    fn write(&self, out: &Path, formulas: &Arc<Catalog>) -> anyhow::Result<ExitCode> {
        standalone::check(out, self.force)?;
        let mut opened = Vec::with_capacity(self.recordings.len());
        for file in &self.recordings {
            let name = file.display().to_string();
            let recording = recordings::read(file, &name, self.serve.history, formulas)?;
            if let Some(damage) = &recording.damage {
                note(damage);
            }
            opened.push(recording);
        }
        let written = standalone::write(out, self.force, self.size as u64, &opened, peaks::add_to_recording)?;
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

/// Whether a file is a JSON object, which no recording is.
fn starts_like_result(file: &Path) -> bool {
    let mut head = [0; 64];
    let count = open_to_read(file).and_then(|mut file| file.read(&mut head)).unwrap_or(0);
    head[..count].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

fn result(file: &Path) -> anyhow::Result<ShownResult> {
    let text = saved::read(file)?;
    SavedResult::parse(file, &text)?;
    let json = String::from_utf8(text).with_context(|| format!("{} is not UTF-8", file.display()))?;
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
