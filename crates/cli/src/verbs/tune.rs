//! `numa tune`.

use crate::choose::ProcessArgs;
use crate::to_file::{self, Existing};
use crate::tuned::{self, TuneFiles};
use crate::{Examples, GlobalArgs};
use anyhow::{Context, anyhow, bail};
use clap::Args;
use numakit_observation::interval;
use numakit_sys::command::quoted;
use numakit_sys::signal::Signal;
use numakit_sys::stdio::{note, print};
use numakit_sys::{executable, tty};
use numakit_trials::{
    Advised, MAX_FILE, ReportedAnswer, SessionEnd, TrialCheck, TrialEnd, TrialMetric, TrialRun, TrialRunner,
    TrialScene, TuneReport, TuneRequest, TuneSession, words_of_line,
};
use numakit_tune::candidates::TuneSetting;
use numakit_tune::{Better, RaceBudget, RunFailure, RunOutcome};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Runs that a tuning makes at most.
const MOST_RUNS: u32 = 1000;
/// The longest budget.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Measure which setting makes a program faster, and by how much
///
/// The program is observed once, as 'numa explain' does it. What that advises is tried first; then cores, placement, memory, huge
/// pages and allocators that may make any program faster. All settings run in rounds with the program as it is, in random order;
/// those that are behind are left out. The best one runs in pairs with the program as it is, and only these pairs give the gain that
/// is printed, with the interval in which the median gain of ten new pairs is by 95 %. That nothing is worth it is an answer too.
///
/// A run is what you would type: the command that is printed at the end is the one that ran. Runs that other programs, the hypervisor
/// or a lower frequency disturbed are repeated. A run hangs if it takes five times as long as the longest
/// without a setting, and ten seconds at least. What a run leaves behind is ended. The program reads nothing and has no terminal.
///
/// All runs are kept in a file, from which --resume goes on after Ctrl-C or a crash.
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Compare the number that this regular expression finds in what the program prints: its first group, and of several matches the
    /// last one [default: the time of the run]
    #[arg(long, value_name = "REGEX", group = "figure")]
    metric: Option<String>,
    /// Compare the last number that this command prints, after each run
    #[arg(long, value_name = "CMD", group = "figure")]
    metric_command: Option<String>,
    /// Compare the CPU time of the program and all that it starts
    #[arg(long, group = "figure")]
    cpu_time: bool,
    /// More of the metric is better, as of transactions in a second
    #[arg(long, requires = "figure", conflicts_with = "cpu_time")]
    higher: bool,
    /// A run whose output does not match this regular expression is wrong, and its setting is out
    #[arg(long, value_name = "REGEX", group = "right")]
    check: Option<String>,
    /// A run is wrong if this command fails, which reads what the program printed
    #[arg(long, value_name = "CMD", group = "right")]
    check_command: Option<String>,
    /// End after this time, as in 20m, or after this number of runs
    #[arg(long, value_name = "TIME|RUNS", default_value = "20m", value_parser = budget)]
    budget: RaceBudget,
    /// Gains of less than this percentage are not worth a setting
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percentage)]
    worth: f64,
    /// Also try these options of 'numa run', with variables before them, as in --with '--apply app.cure' or --with 'OMP_NUM_THREADS=4
    /// -c 4'; can be given several times
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, value_parser = with)]
    with: Vec<TuneSetting>,
    /// Do not observe the program first, and try nothing that is advised
    #[arg(long)]
    no_verdicts: bool,
    /// Do not try settings that may make any program faster
    #[arg(long, alias = "only-verdicts")]
    no_generic: bool,
    /// Also try settings of the whole machine, transparent huge pages and NUMA balancing (root); they are restored after each run
    #[arg(long)]
    system: bool,
    /// Tune this server: it is started, warmed, loaded and stopped in each run
    #[arg(long, value_name = "CMD", requires_all = ["load", "ready"], conflicts_with_all = ["command", "observed"], help_heading = "Servers")]
    server: Option<String>,
    /// The load of the server; its time is compared, or the metric in what it prints
    #[arg(long, value_name = "CMD", requires = "server", help_heading = "Servers")]
    load: Option<String>,
    /// A command that succeeds as soon as the server is ready
    #[arg(long, value_name = "CMD", requires = "server", help_heading = "Servers")]
    ready: Option<String>,
    /// What warms the server before the load [default: the load, once]
    #[arg(long, value_name = "CMD", requires = "server", help_heading = "Servers")]
    warm: Option<String>,
    #[command(flatten, next_help_heading = "Running programs: moved and moved back in turns")]
    processes: ProcessArgs,
    /// The time of a turn
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "metric_command", value_parser = interval::parse_length)]
    turn: Duration,
    /// The metric is a counter: its increase in a second is compared, and more is better
    #[arg(long, requires = "metric_command")]
    counter: bool,
    /// Go on with the runs that this file keeps, after Ctrl-C or a crash, within what is left of their budget
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "observed", "server", "figure", "right", "budget", "worth", "with", "no_verdicts", "no_generic", "system"])]
    resume: Option<PathBuf>,
    /// Write JSON to this file; '-' is standard output, without the text
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    command: Vec<OsString>,
}

fn budget(word: &str) -> Result<RaceBudget, String> {
    let plain = word.trim().trim_end_matches("runs").trim_end_matches("run").trim();
    if let Ok(runs) = plain.parse::<u32>() {
        return match runs {
            1.. => Ok(RaceBudget { runs: runs.min(MOST_RUNS), seconds: None }),
            0 => {
                Err("without a run nothing is known; give a number of runs such as 60, or a time such as 20m"
                    .to_owned())
            }
        };
    }
    // A minute is written as min elsewhere, and as m by most.
    let minutes = plain.strip_suffix('m').map(|number| format!("{number}min"));
    let time = interval::parse_length_up_to(minutes.as_deref().unwrap_or(plain), LONGEST);
    time.map(|time| RaceBudget { runs: MOST_RUNS, seconds: Some(time.as_secs_f64()) })
        .map_err(|error| format!("{error}; or give a number of runs, as in 60"))
}

fn with(line: &str) -> Result<TuneSetting, String> {
    numakit_trials::setting_of_words(line).ok_or_else(|| {
        format!(
            "'{line}' has no option of 'numa run' and no variable; give them as in '--thp on' or 'NAME=VALUE'"
        )
    })
}

fn percentage(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent < 100.0 => Ok(percent / 100.0),
        _ => Err("give a percentage above 0 and below 100, such as 1".to_owned()),
    }
}

impl TuneArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa tune ./app", "which setting of numa is worth it for this program, and what it gains"),
        ("numa tune --metric 'tps = ([0-9.]+)' --higher ./bench", "by a figure that it prints"),
    ];

    /// Tunes.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("programs run on this machine only")?;
        if let Some(json) = &self.json {
            to_file::check(json, Existing::Replace)?;
        }
        let mut session = match &self.resume {
            Some(file) => return self.go_on(TuneSession::read(file)?),
            None => {
                let begun = self.begin(self.request()?);
                tuned::end_progress();
                match begun? {
                    Ok(begun) => begun,
                    Err(code) => return Ok(code),
                }
            }
        };
        let (session, runner) = (&mut session.0, &mut session.1);
        self.finish(session, runner)
    }

    fn go_on(&self, mut session: TuneSession) -> anyhow::Result<ExitCode> {
        let guarded = session.tuning.plan().machine.as_ref().map(numakit_trials::files).unwrap_or_default();
        let mut runner = TrialRunner::new(&session.request, &guarded)?;
        session.remind(&mut runner);
        note(format_args!(
            "goes on after {} of {}",
            numakit_model::numbers::counted(session.runs.len(), "run"),
            session.request.scene.typed()
        ));
        self.finish(&mut session, &mut runner)
    }

    /// What is asked for.
    fn request(&self) -> anyhow::Result<TuneRequest> {
        let scene = self.scene()?;
        let metric = match (&self.metric, &self.metric_command) {
            (Some(pattern), _) => {
                numakit_trials::pattern(pattern)?;
                TrialMetric::Output { pattern: pattern.clone() }
            }
            (None, Some(line)) => TrialMetric::Command { line: line.clone() },
            (None, None) if self.cpu_time => TrialMetric::CpuTime,
            (None, None) => TrialMetric::WallTime,
        };
        if matches!(scene, TrialScene::Running { .. }) && !matches!(metric, TrialMetric::Command { .. }) {
            bail!(
                "what a running program gains is not known without a number of it; give a command that prints one with --metric-command"
            );
        }
        let check = match (&self.check, &self.check_command) {
            (Some(pattern), _) => {
                numakit_trials::pattern(pattern)?;
                Some(TrialCheck::Output { pattern: pattern.clone() })
            }
            (None, Some(line)) => Some(TrialCheck::Command { line: line.clone() }),
            (None, None) => None,
        };
        let is_running = matches!(scene, TrialScene::Running { .. });
        if self.no_verdicts && self.no_generic && self.with.is_empty() && !is_running {
            bail!(
                "nothing is left to try: leave out --no-verdicts or --no-generic, or give a setting with --with"
            );
        }
        Ok(TuneRequest {
            scene,
            metric,
            is_counter: self.counter,
            better: if self.higher || self.counter { Better::More } else { Better::Less },
            check,
            budget: self.budget,
            worth: self.worth,
            with_verdicts: !self.no_verdicts && !is_running,
            with_generic: !self.no_generic && !is_running,
            with_machine: self.system,
        })
    }

    fn scene(&self) -> anyhow::Result<TrialScene> {
        if let (Some(server), Some(load), Some(ready)) = (&self.server, &self.load, &self.ready) {
            let words = |line: &String| tuned::texts(&words_of_line(line));
            return Ok(TrialScene::Server {
                server: words(server)?,
                load: words(load)?,
                warm: self.warm.as_ref().map(words).transpose()?,
                ready: words(ready)?,
            });
        }
        let chosen = self.processes.words();
        if !chosen.is_empty() {
            // A process that is not there is said before anything else.
            self.processes.find(&numakit_sys::SysRoot::host())?;
            let target = tuned::texts(&words_of_line(&chosen))?;
            return Ok(TrialScene::Running { target, turn: self.turn.as_secs_f64() });
        }
        if self.command.is_empty() {
            bail!(
                "no program given; name one, as in 'numa tune ./app', a server with --server, or running processes with --pid"
            );
        }
        Ok(TrialScene::Program { words: tuned::texts(&self.command)? })
    }

    /// Observes the program and runs it once; or, for a command that does not start, the exit code.
    fn begin(&self, request: TuneRequest) -> anyhow::Result<Result<(TuneSession, TrialRunner), ExitCode>> {
        let words = request.scene.words();
        if !matches!(request.scene, TrialScene::Running { .. }) {
            let path = std::env::var_os("PATH").unwrap_or_default();
            if let Err(error) = executable::find(words[0].as_ref(), &path) {
                note(format_args!("{}: {error}", words[0]));
                return Ok(Err(ExitCode::from(numakit_sys::command::start_failure_status(&error))));
            }
        }
        let root = numakit_sys::SysRoot::host();
        let topology =
            numakit_topology::read_for_placement(&root, false).context("cannot read the topology")?;
        let machine = request.with_generic.then(|| numakit_trials::tuned(&topology, request.with_machine));
        let guarded = machine.as_ref().map(numakit_trials::files).unwrap_or_default();
        let mut files = TuneFiles::of(&request.scene)?;
        let mut runner = TrialRunner::new(&request, &guarded)?;
        let mut advised = match request.with_verdicts {
            true => match self.observed(&request, &mut runner, &files)? {
                Ok(advised) => advised,
                Err(signal) => return Ok(Err(interrupted_early(signal))),
            },
            false if matches!(request.scene, TrialScene::Running { .. }) => tuned::moves(),
            false => Advised::default(),
        };
        advised.add_given(&self.with);
        tuned::progress(&format!("runs {} without a setting", request.scene.typed()));
        let limit = request.budget.seconds.map(Duration::from_secs_f64);
        let first = match runner.run(&TuneSetting::default(), limit)? {
            TrialEnd::Ran(run) => *run,
            TrialEnd::Interrupted(signal) => return Ok(Err(interrupted_early(signal))),
        };
        works(&first)?;
        files.keep_cure_of(&advised);
        let session =
            TuneSession::begin(request, advised, machine, (first, runner.seen()), files.session.clone())?;
        Ok(Ok((session, runner)))
    }

    /// What `numa explain` advises.
    fn observed(
        &self,
        request: &TuneRequest,
        runner: &mut TrialRunner,
        files: &TuneFiles,
    ) -> anyhow::Result<Result<Advised, Signal>> {
        tuned::progress(&format!("observes {}", request.scene.typed()));
        let limit = request.budget.seconds.map(Duration::from_secs_f64);
        let run = match runner.observe(&files.observed, &files.cure, limit)? {
            TrialEnd::Ran(run) => *run,
            TrialEnd::Interrupted(signal) => return Ok(Err(signal)),
        };
        if run.outcome == RunOutcome::Failed(RunFailure::Hung) {
            works(&run)?;
        }
        if let RunOutcome::Failed(_) = run.outcome {
            // It may fail for being observed: its run without that decides.
            note(format_args!(
                "its observation failed, so nothing is advised: {}",
                run.why.unwrap_or_default()
            ));
            return Ok(Ok(Advised::default()));
        }
        let words: Vec<OsString> = request.scene.words().iter().map(OsString::from).collect();
        let advised = numakit_sys::file::named_text(&files.observed, MAX_FILE)
            .map_err(anyhow::Error::from)
            .and_then(|json| Ok(numakit_trials::advised(&json, &words, &files.cure_word())?));
        match advised {
            Ok(advised) => Ok(Ok(advised)),
            Err(error) => {
                note(format_args!("the observation cannot be read, so nothing is advised: {error}"));
                Ok(Ok(Advised::default()))
            }
        }
    }

    fn finish(&self, session: &mut TuneSession, runner: &mut TrialRunner) -> anyhow::Result<ExitCode> {
        let ended = session.go(runner, tuned::progress_of);
        tuned::end_progress();
        if let Err(error) = runner.restore_running()? {
            bail!(
                "the processes could not be moved back: {error}; type 'numa move {} --back'",
                session.request.scene.typed()
            );
        }
        let ended = ended?;
        let report = session.report();
        let resume = format!("numa tune --resume {}", quoted(&[&session.file]));
        let is_open = matches!(report.answer, ReportedAnswer::Open { .. });
        let is_left = matches!(ended, SessionEnd::Interrupted(_)) && session.tuning.next_run().is_some();
        self.show(&report, (is_left && is_open).then_some(resume.as_str()))?;
        if !is_left {
            tuned::remove_useless_cure(session, &report);
        }
        match ended {
            SessionEnd::Interrupted(signal) => Ok(interrupted(signal)),
            SessionEnd::Over if matches!(report.answer, ReportedAnswer::DefaultFailed { .. }) => {
                Ok(ExitCode::from(2))
            }
            SessionEnd::Over => Ok(ExitCode::SUCCESS),
        }
    }

    fn show(&self, report: &TuneReport, resume: Option<&str>) -> anyhow::Result<()> {
        if let Some(path) = &self.json {
            to_file::write(path, Existing::Replace, "", |to| {
                serde_json::to_writer_pretty(&mut *to, report)?;
                writeln!(to)?;
                Ok(())
            })?;
            if to_file::is_standard_output(path) {
                return Ok(());
            }
        }
        print(numakit_terminal::tune::text(report, resume, tty::columns()))?;
        Ok(())
    }
}

/// An error if the first run says that nothing can be compared.
fn works(first: &TrialRun) -> anyhow::Result<()> {
    match first.outcome {
        RunOutcome::Failed(_) => Err(anyhow!(
            "the program must work without a setting before any is tried: {}",
            first.why.as_deref().unwrap_or("it failed")
        )),
        RunOutcome::Metric(_) | RunOutcome::Spoiled => Ok(()),
    }
}

/// A run that is observed and a first one with a cold cache are no runs to go on from.
fn interrupted_early(signal: Signal) -> ExitCode {
    note("interrupted before a run was there to keep; to begin again, type the same command");
    interrupted(signal)
}

fn interrupted(signal: Signal) -> ExitCode {
    ExitCode::from(128 + signal.number as u8)
}
