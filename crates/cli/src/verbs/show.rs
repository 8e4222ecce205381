//! `numa show`.

mod engine;
mod page;
mod recordings;

use crate::formulas::FormulaArgs;
use crate::global::OF_A_RECORDING;
use crate::page::ServeArgs;
use crate::verbs::bench;
use crate::{Examples, GlobalArgs};
use anyhow::{Context, bail};
use clap::{Arg, Args};
use engine::ShownHostsArgs;
use numakit_findings::comparison::explained::compare;
use numakit_findings::comparison::explained::kept;
use numakit_findings::comparison::explained::saved::{self, SavedResult};
use numakit_findings::explained::JudgedReport;
use numakit_findings::shown_kind::ShownKind;
use numakit_sys::cache;
use numakit_sys::stdio::{note, print};
use numakit_terminal::explain;
use page::PageArgs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

/// Show recordings, and results of 'numa explain' and 'numa bench'; compare two
///
/// Any of these files may be given: numa looks what it is. Without a file, the newest result of 'numa explain' is shown.
///
/// A recording is analysed on one page. The first three lines say what is wrong, what it costs and what to do. The findings follow with
/// their numbers, then tables: where memory was used or allocated (by node and phase), page faults,
/// memory, CPUs, the largest changes, the overhead of the recording.
/// Labels ('numa ctl label TEXT') divide it into phases: a phase lasts from one label to the next. The phase 'command' is that of the
/// observed command.
///
/// Of two recordings, A and B, the first three lines say whether B is better, by how much, and what to do.
/// Tables of what differs follow, each with its noise, then which findings are gone and which are new. Two results are compared as
/// 'numa explain BEFORE AFTER' and 'numa bench compare' do.
///
/// Instead of a file, the URL of an engine may be given, to which 'numa push' or 'numa record --to' has sent samples: a recording of
/// each --host is fetched, shown or compared, and removed.
///
/// With --page, recordings or results of 'numa explain' are shown in a web page. It is
/// served until a signal arrives (Ctrl-C). Labels that are edited in the page are not saved to the recording.
/// With --html there is no server: the page and what it shows are written to one HTML file.
///
/// The exit status is 1 if a recording is damaged; the text then covers its undamaged part. The samples of a recorder that was killed
/// are in FILE.tail, and are shown too.
#[derive(Debug, Args)]
#[command(mut_args(of_server))]
pub struct ShowArgs {
    /// Recordings of numa or NUMAscope, or what 'numa explain --json' or 'numa bench --json' wrote [default: the newest result of
    /// 'numa explain']
    #[arg(value_name = "FILE|URL")]
    shown: Vec<PathBuf>,
    /// Analyse only this phase of a recording
    #[arg(long, value_name = "LABEL")]
    phase: Option<String>,
    /// List also what is absent or cannot be told, and why; of two recordings, all differences; of a benchmark, all values
    #[arg(long)]
    all: bool,
    /// Rows of each table of a result, and changes between two [default: 10; 40 of 'numa bench']
    #[arg(long, value_name = "N")]
    rows: Option<u16>,
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Write comma-separated values of a result of 'numa bench', one line for each value
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    hosts: ShownHostsArgs,
    #[command(flatten)]
    formulas: FormulaArgs,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    serve: ServeArgs,
}

/// The options of the server need --page.
fn of_server(arg: Arg) -> Arg {
    const OPTIONS: [&str; 7] =
        ["listen", "trusted_host", "base_path", "tls_cert", "tls_key", "key_file", "no_open"];
    match OPTIONS.contains(&arg.get_id().as_str()) {
        true => arg.requires("page"),
        false => arg,
    }
}

impl ShowArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa show numa-1.arrows", "what is wrong, what it costs, what to do"),
        ("numa show before.json after.json", "whether the second one is better"),
    ];

    /// Prints what the files contain, or shows it in the page.
    pub fn run(mut self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        let formulas = self.formulas.load()?;
        if self.shown.is_empty() {
            self.shown.push(newest()?);
        }
        let _fetched = self.hosts.fetch(&mut self.shown)?;
        let kind = ShownKind::of_all(&self.shown)?;
        self.check(kind)?;
        if kind != ShownKind::Bench && self.page.is_asked() {
            return self.page.show(&self.shown, kind, &self.serve, formulas);
        }
        match (kind, self.shown.as_slice()) {
            (ShownKind::Recording, [one]) => self.recording(one, &formulas, global),
            (ShownKind::Recording, [one, other]) => self.compare_recordings(one, other, &formulas, global),
            (ShownKind::Explained, [one]) => self.explained(one),
            (ShownKind::Explained, [one, other]) => self.compare_explained(one, other),
            (ShownKind::Bench, [one]) => {
                let (json, csv, all, html) = (self.json, self.csv, self.all, self.page.html.clone());
                bench::show(one, bench::BenchOutputArgs { json, csv, all, html }, global)
            }
            (ShownKind::Bench, [one, other]) => bench::compare(one, other, self.rows, self.json),
            (_, files) => bail!(
                "{} files: the text is of one file or compares two; --page shows recordings and results of 'numa explain' together",
                files.len()
            ),
        }
    }

    /// Refuses options that say nothing about files of this kind.
    fn check(&self, kind: ShownKind) -> anyhow::Result<()> {
        use ShownKind::{Bench, Explained, Recording};
        let to_page = self.page.is_asked();
        let of_text = |kinds: &'static [ShownKind]| if to_page { &[Bench] } else { kinds };
        let options: [(&str, bool, &[ShownKind]); 8] = [
            ("--phase", self.phase.is_some(), of_text(&[Recording])),
            ("--formulas", self.formulas.is_given(), &[Recording]),
            ("--all", self.all, of_text(&[Recording, Explained, Bench])),
            ("--json", self.json, of_text(&[Recording, Explained, Bench])),
            ("--csv", self.csv, &[Bench]),
            ("--rows", self.rows.is_some(), of_text(&[Explained, Bench])),
            ("--page", self.page.is_served(), &[Recording, Explained]),
            ("--size", self.page.size.is_some(), &[Recording]),
        ];
        let Some((option, ..)) = options.iter().find(|(_, given, kinds)| *given && !kinds.contains(&kind))
        else {
            return Ok(());
        };
        let file = self.shown.first().map(|file| file.display().to_string()).unwrap_or_default();
        match kind {
            Recording | Explained if to_page => {
                bail!("{option} is for the text, which is not printed with --page or --html; omit it")
            }
            Bench if *option == "--page" => {
                bail!("{file} is {kind}, whose page needs no server: --html OUT writes it")
            }
            _ => bail!("{file} is {kind}, to which {option} does not apply; omit it"),
        }
    }

    fn explained(&self, file: &Path) -> anyhow::Result<ExitCode> {
        let report = JudgedReport::parse(file, &saved::read(file)?)?;
        match self.json {
            true => print(format_args!(
                "{}\n",
                serde_json::to_string_pretty(&report).context("cannot write JSON")?
            ))?,
            false => print(explain::text(&report, self.rows.map_or(EXPLAINED_ROWS, Into::into)))?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn compare_explained(&self, before: &Path, after: &Path) -> anyhow::Result<ExitCode> {
        let read = |path| SavedResult::parse(path, &saved::read(path)?);
        let comparison = compare(&read(before)?, &read(after)?);
        if self.json {
            let json = serde_json::to_string_pretty(&comparison).context("cannot write JSON")?;
            print(format_args!("{json}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        print(numakit_terminal::compare::text(&comparison, self.rows.map_or(EXPLAINED_ROWS, Into::into)))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Rows of each table of 'numa explain'.
const EXPLAINED_ROWS: usize = 10;

/// The newest result of 'numa explain', which a message names; and another one names a newer recording.
fn newest() -> anyhow::Result<PathBuf> {
    let recording = newest_recording();
    let shown = recording.as_ref().map_or("FILE", |(_, name)| name);
    let fix = format!("give a recording or a result: numa show {shown}");
    let folder = kept::folder().with_context(|| {
        format!("the newest result of 'numa explain' has no place: HOME is not set; {fix}")
    })?;
    let kept = kept::newest_first(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let Some((when, path)) = kept.into_iter().next() else {
        bail!("there is no result of 'numa explain' in {}; {fix}", folder.display());
    };
    note(format_args!("shows the newest result of 'numa explain': {}", path.display()));
    if let Some((_, name)) = recording.filter(|(recorded, _)| *recorded > when) {
        note(format_args!("{name} is newer: numa show {name}"));
    }
    Ok(path)
}

/// The newest recording that 'numa record' has named, in this folder; none in one that cannot be read.
fn newest_recording() -> Option<(SystemTime, String)> {
    let files = cache::newest_first(Path::new("."), ".arrows").unwrap_or_default();
    let names =
        files.into_iter().filter_map(|(when, path)| Some((when, path.file_name()?.to_str()?.to_owned())));
    names.into_iter().find(|(_, name)| {
        let number = name.strip_prefix("numa-").and_then(|rest| rest.strip_suffix(".arrows"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}
