//! What to type after an observation: commands, the most valuable first, with what each is worth.

use crate::activity;
use crate::explained::{FewSamples, JudgedReport};
use crate::finding::{Certainty, CostBasis, Finding, FindingCost, FindingRemedy, FindingSubject};
use crate::rules;
use numakit_explain::runtime::{NamelessCode, NamesSource, RuntimeNames, RuntimeProgram};
use numakit_explain::{Regime, lacks_words};
use numakit_model::thresholds::MIN_SAMPLES;
use numakit_sys::command::quoted;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// At most this many commands are given: of more, none would be read.
const MAX_STEPS: usize = 2;
/// A change of the source that saves this part of what the cause costs is named beside it.
const LESS: f64 = 0.5;
/// From this percentage of its time on, a program is worth a command that needs no change of its source.
const NOTICED: f64 = 1.0;
/// From this part of the CPU time on, what cannot be told of code without names is worth a command.
const NAMELESS: f64 = 0.15;
/// From this part of the CPU time on, the chains that wait for memory are worth a look.
const AT_MEMORY: f64 = 0.2;
/// With less, nothing can be remote on another machine.
const MIN_AT_MEMORY: f64 = 0.01;
/// With fewer samples than this many times the least, there would be too few again.
const ENOUGH: f64 = 3.0;
/// The highest rate that `numa explain` takes.
const MAX_FREQUENCY: u32 = 10_000;
/// The rate that it takes without -F.
const USUAL_FREQUENCY: u32 = 199;
/// Bounds of the time for which a program is observed again, in seconds: one that hardly works does not give more by waiting.
const LEAST_SECONDS: f64 = 30.0;
const MOST_SECONDS: f64 = 120.0;
/// Threads whose waiting was not seen, on average, from which on that hides what the program does.
const UNSEEN: f64 = 0.5;
/// Where distributions install programs, whose packages have their symbols elsewhere.
const PACKAGED: [&str; 6] = ["/usr/bin/", "/usr/sbin/", "/usr/lib", "/bin/", "/sbin/", "/lib"];
/// The program that gets symbols.
pub const SYMBOL_CLIENT: &str = "debuginfod-find";
const SYMBOL_SERVER: &str = "https://debuginfod.elfutils.org";

/// How the same program is observed again.
#[derive(Debug, Clone, Default)]
pub struct ObservedAgain {
    /// Options as they are typed, except the rate and the time; may be empty.
    pub options: String,
    /// Whether the program that gets symbols is installed.
    pub gets_symbols: bool,
    /// Samples in a second of CPU time of a thread.
    pub frequency: u32,
    /// For how long; `None`: until it ends.
    pub duration: Option<Duration>,
    /// The command line, or the options that choose running processes, as they are typed.
    pub target: String,
    /// Whether these are running processes.
    pub is_running: bool,
    /// Whether the options choose the same program after it was started again, as those with a name do.
    pub is_found_again: bool,
    /// Whether these run in a container, where commands of this machine cannot start them.
    pub is_contained: bool,
    /// The word by which the next run finds the cure of this observation: `last`, or its file. `None` if the cure is not kept.
    pub cure: Option<String>,
    /// On a machine of one node, if page faults can be seen: a machine of several nodes that has a name.
    pub larger_machine: Option<&'static str>,
}

/// Why a command is typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NextKind {
    /// It is the remedy of a finding, or tries what that is worth.
    Remedy {
        /// What it does, if the words do not say that.
        expect: Option<String>,
        /// The other machine for which it is meant, if it is not for this one.
        machine: Option<String>,
        /// Whether its last word is in place of the command that starts the program, or of its arguments, which are not known.
        is_incomplete: bool,
        /// Whether it is typed in the container, and not where the program was observed.
        #[serde(default)]
        is_in_container: bool,
    },
    /// It compares with this result, after the program was changed.
    Proof,
    /// It observes the program with the remedy before it, and compares with this result.
    Trial,
    /// It takes more samples.
    MoreSamples,
    /// It takes more samples if the program works for longer: it ended too soon for any rate.
    MoreWork,
    /// It says which methods deliver samples.
    OtherMethod,
    /// It says where samples land on an idle machine.
    Calibration,
    /// It sees what this user may not.
    Privileges,
    /// It gets the symbols of a file from a server.
    Symbols {
        /// The file.
        path: String,
        /// The part of the CPU time in functions without names.
        share: f64,
    },
    /// It gets names once the file was built with them.
    Rebuild {
        /// The file.
        path: String,
        /// The part of the CPU time in functions without names.
        share: f64,
    },
    /// It gets the names of code that a process compiles while it runs.
    RuntimeNames {
        /// The part of the CPU time in that code.
        share: f64,
    },
    /// It estimates the same run on a machine of several nodes.
    OtherMachine,
    /// It says where threads run on the machine of an estimate.
    Placement {
        /// The machine.
        machine: String,
    },
    /// It draws which chains of calls wait for memory.
    CallChains,
    /// It prints everything that was found.
    Details,
}

/// A command to type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NextStep {
    /// Why.
    #[serde(flatten)]
    pub kind: NextKind,
    /// What to change, in words. The command tries it, or proves it afterwards.
    pub r#do: Option<String>,
    /// The command as it is typed.
    pub command: String,
    /// What that can be worth; `None` if it only tells more.
    pub worth: Option<FindingCost>,
    /// How the worth was computed.
    pub why: Option<String>,
}

impl NextStep {
    fn new(kind: NextKind, command: String) -> Self {
        Self { kind, r#do: None, command, worth: None, why: None }
    }
}

impl ObservedAgain {
    /// The command line, with options in addition.
    fn command(&self, extra: &str) -> String {
        self.at(extra, self.frequency, self.duration, &self.target)
    }

    fn at(&self, extra: &str, frequency: u32, duration: Option<Duration>, target: &str) -> String {
        let rate = (frequency != USUAL_FREQUENCY).then(|| format!("-F {frequency}"));
        let time = duration.map(|time| format!("--for {}s", time.as_secs_f64()));
        let (rate, time) = (rate.unwrap_or_default(), time.unwrap_or_default());
        let words = ["numa explain", &self.options, extra, &rate, &time, target];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The observation of a remedy that starts the program, compared with this result; `None` of one that changes what runs.
    fn trial(&self, remedy: &str, start: Option<&str>) -> Option<NextStep> {
        let before = remedy.strip_suffix(start?)?;
        // What a shell does before it runs a program stays before it.
        let is_set = |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.starts_with('-'));
        let at = before.rfind("&& ").map_or(0, |at| at + "&& ".len());
        let set: usize =
            before[at..].split_inclusive(' ').take_while(|word| is_set(word)).map(str::len).sum();
        let (shell, run) = remedy.split_at(at + set);
        let command = self.at("--compare", self.frequency, None, run);
        Some(NextStep::new(NextKind::Trial, format!("{shell}{command}")))
    }

    /// The command line after a change, for which a running program is started again.
    fn after_change(&self, judged: &JudgedReport) -> String {
        let processes = &judged.report.processes;
        let name = processes.iter().map(|process| process.name.as_str()).find(|name| !name.is_empty());
        let target = match name.filter(|_| self.is_running && !self.is_found_again) {
            Some(name) if processes.len() == 1 => format!("--pid $(pgrep -nx {})", quoted(&[name])),
            Some(name) => format!("--name {}", quoted(&[name])),
            None => self.target.clone(),
        };
        self.at("--compare", self.frequency, self.duration, &target)
    }
}

/// The command that gets the symbols of a file, if a package of a distribution has it.
pub fn symbols_command(path: &str) -> Option<String> {
    let is_packaged = PACKAGED.iter().any(|folder| path.starts_with(folder));
    is_packaged
        .then(|| format!("DEBUGINFOD_URLS={SYMBOL_SERVER} {SYMBOL_CLIENT} debuginfo {}", quoted(&[path])))
}

/// What to type next, the most valuable first; at least one command. `start` is the command line that starts the program, if it
/// is known.
pub(crate) fn steps(judged: &JudgedReport, again: &ObservedAgain, start: Option<&str>) -> Vec<NextStep> {
    // What has ended cannot be observed again by its number.
    let has_ended = again.is_running && judged.report.processes.iter().all(|process| process.ended);
    let started = start.filter(|_| has_ended && !again.is_contained).map(|start| ObservedAgain {
        target: start.to_owned(),
        is_running: false,
        duration: None,
        ..again.clone()
    });
    let again = started.as_ref().unwrap_or(again);
    let (cause, own) = (judged.cause(), judged.own_cause());
    let mut steps = match (cause, judged.few_samples()) {
        (Some(place), _) => vec![mended(judged, again, &judged.findings[place])],
        (None, Some(few)) => vec![clearer(judged, again, few)],
        (None, None) if judged.report.regime == Regime::Unknown => {
            vec![NextStep::new(NextKind::Calibration, "numa doctor --calibrate".to_owned())]
        }
        (None, None) => Vec::new(),
    };
    // A program that gets no CPU gives no samples by waiting for them.
    let few = judged.few_samples().filter(|few| *few != FewSamples::Starved);
    if let (None, Some(_), Some(few)) = (own, cause, few) {
        steps.push(clearer(judged, again, few));
    }
    steps.extend(permitted(judged, again));
    steps.extend(named(judged, again, start.filter(|_| !again.is_contained)));
    let others = judged.findings.iter().enumerate().filter(|(place, _)| Some(*place) != cause);
    let of_cause = cause.map(|place| &judged.findings[place]).filter(|finding| !finding.is_of_others());
    let least = LESS * of_cause.and_then(|finding| finding.cost.percent()).unwrap_or(0.0);
    for step in others.filter_map(|(_, finding)| tried(judged, again, finding, least)) {
        // One command may prove several changes, but a remedy is typed once.
        let is_remedy = matches!(step.kind, NextKind::Remedy { .. });
        let is_known =
            |known: &NextStep| known.command == step.command && (is_remedy || known.r#do == step.r#do);
        if !steps.iter().any(is_known) {
            steps.push(step);
        }
    }
    add_new(&mut steps, brought_together(judged, again, start));
    let least = at_least(judged, &steps);
    add_new(&mut steps, least);
    if let Some(first) = steps.first().filter(|step| matches!(step.kind, NextKind::Remedy { .. })) {
        let proof = again.trial(&first.command, start.filter(|_| !again.is_contained));
        steps.push(proof.unwrap_or_else(|| NextStep::new(NextKind::Proof, again.after_change(judged))));
    }
    let there = projected(judged);
    if let Some(Projected::Wrong(step)) = there {
        // What would be wrong there was asked for.
        steps.insert(0, step);
    } else if own.is_none() && judged.few_samples().is_none() {
        steps.extend(there.map(Projected::into_step));
        steps.extend(elsewhere(judged, again));
    }
    if steps.is_empty() {
        steps.push(NextStep::new(NextKind::Details, "numa show".to_owned()));
    }
    steps.truncate(MAX_STEPS);
    for step in steps.iter_mut().filter(|_| again.is_contained) {
        // What starts the program is a matter of its image; a switch of the kernel is one of the machine.
        if let NextKind::Remedy { is_in_container, .. } = &mut step.kind {
            *is_in_container =
                start.is_some_and(|start| step.command.ends_with(start)) || lacks_words(&step.command);
        }
    }
    steps
}

/// The step that a remedy is, if it has a command.
fn remedy(finding: &Finding, machine: Option<String>) -> Option<NextStep> {
    let FindingRemedy { words, commands, expect, worth } = &finding.remedy;
    let command = commands.first()?.clone();
    let kind = NextKind::Remedy {
        expect: expect.as_ref().map(ToString::to_string),
        machine,
        is_incomplete: lacks_words(&command),
        is_in_container: false,
    };
    Some(NextStep {
        kind,
        r#do: Some(words.clone()),
        command,
        worth: Some(finding.cost.clone()),
        why: worth.as_ref().filter(|worth| worth.at_most.is_some()).map(|worth| worth.why.clone()),
    })
}

/// What to do about a finding that is not the cause, if it costs enough and is not only possible. What others do is said, and no
/// remedy of the program. A change of the source that is worth less than `least` percent comes after the proof of a remedy.
fn tried(judged: &JudgedReport, again: &ObservedAgain, finding: &Finding, least: f64) -> Option<NextStep> {
    let percent = finding.cost.percent().filter(|percent| *percent >= rules::COSTLY)?;
    let is_worth = !finding.remedy.commands.is_empty() || percent >= least;
    (is_worth && finding.certainty > Certainty::Possible && !finding.is_of_others())
        .then(|| mended(judged, again, finding))
}

/// Adds a step unless its command is there.
fn add_new(steps: &mut Vec<NextStep>, step: Option<NextStep>) {
    let is_new = |step: &NextStep| steps.iter().all(|known| known.command != step.command);
    let new = step.filter(is_new);
    steps.extend(new);
}

/// Where no step changes anything, the command for the first object with one: what is misplaced is known exactly, while waits that cost
/// more may follow from it.
fn at_least(judged: &JudgedReport, steps: &[NextStep]) -> Option<NextStep> {
    let changes = |step: &NextStep| matches!(step.kind, NextKind::Remedy { .. });
    let is_of_object = |finding: &&Finding| {
        let is_much = finding.cost.percent().is_none_or(|percent| percent >= NOTICED);
        matches!(finding.subject, FindingSubject::Object(_))
            && finding.certainty > Certainty::Possible
            && is_much
            && !finding.is_of_others()
    };
    let first = judged.findings.iter().filter(is_of_object).find_map(|finding| remedy(finding, None));
    first.filter(|_| !steps.iter().any(changes))
}

/// The command that brings threads together which use the same data on different nodes. What that is worth is not known: it depends on
/// how often they write to it.
fn brought_together(judged: &JudgedReport, again: &ObservedAgain, start: Option<&str>) -> Option<NextStep> {
    judged.separated_threads()?;
    // On a machine of one node they are together.
    let nodes = &judged.report.explanation.sharing.as_ref()?.nodes;
    nodes.windows(2).find(|two| two[0] != two[1])?;
    let command = match again.is_running {
        true => format!("numa move {}", again.target),
        false => {
            format!("numa run --apply {} {}", again.cure.as_ref().filter(|_| !again.is_contained)?, start?)
        }
    };
    let expect = Some("puts threads that use the same data on one node".to_owned());
    let kind = NextKind::Remedy { expect, machine: None, is_incomplete: false, is_in_container: false };
    Some(NextStep::new(kind, command))
}

/// The remedy of a finding, or what it says to change and the command that proves it.
fn mended(judged: &JudgedReport, again: &ObservedAgain, finding: &Finding) -> NextStep {
    remedy(finding, None).unwrap_or_else(|| NextStep {
        r#do: Some(finding.remedy.words.clone()),
        worth: Some(finding.cost.clone()),
        why: finding.remedy.worth.as_ref().filter(|worth| worth.at_most.is_some()).map(|w| w.why.clone()),
        ..NextStep::new(NextKind::Proof, again.after_change(judged))
    })
}

/// More samples.
fn clearer(judged: &JudgedReport, again: &ObservedAgain, few: FewSamples) -> NextStep {
    if few == FewSamples::Method {
        return NextStep::new(NextKind::OtherMethod, "numa doctor".to_owned());
    }
    let seen = judged.report.explanation.samples.total as f64;
    let times = ENOUGH * MIN_SAMPLES as f64 / seen.max(1.0);
    let target = &again.target;
    if again.is_running || again.duration.is_some() {
        let seconds = match seen > 0.0 {
            true => (judged.report.seconds * times).clamp(LEAST_SECONDS, MOST_SECONDS).ceil(),
            false => LEAST_SECONDS,
        };
        let time = Some(Duration::from_secs_f64(seconds));
        return NextStep::new(NextKind::MoreSamples, again.at("", again.frequency, time, target));
    }
    let used = (judged.report.explanation.threads.user as f64 / 1e9).max(1e-9);
    let needed = ENOUGH * MIN_SAMPLES as f64 / used;
    match needed <= f64::from(MAX_FREQUENCY) && needed > f64::from(again.frequency) {
        // A round number is easier to read and to type.
        true => {
            let frequency = ((needed / 100.0).ceil() * 100.0) as u32;
            let command = again.at("", frequency.min(MAX_FREQUENCY), None, target);
            NextStep::new(NextKind::MoreSamples, command)
        }
        false => NextStep::new(NextKind::MoreWork, again.command("")),
    }
}

/// The command of a user who may see what threads wait for, where that hides what the program does.
fn permitted(judged: &JudgedReport, again: &ObservedAgain) -> Option<NextStep> {
    let waits = &judged.report.explanation.waits;
    waits.refused.as_ref()?;
    let unseen = waits.unseen as f64 / 1e9 / judged.report.seconds.max(1e-9);
    let is_hidden = unseen >= UNSEEN && !judged.activity().is_busy;
    is_hidden.then(|| NextStep::new(NextKind::Privileges, format!("sudo {}", again.command(""))))
}

/// The command that gets the names of code with much of the CPU time, if it can be typed here.
fn named(judged: &JudgedReport, again: &ObservedAgain, start: Option<&str>) -> Option<NextStep> {
    let share = |time: u64| activity::of_cpu_time(&judged.report.explanation, time);
    let names = &judged.report.names;
    let compiled = names.runtimes.iter().find(|runtime| share(runtime.nameless) >= NAMELESS);
    if let Some((runtime, command)) =
        compiled.and_then(|runtime| Some((runtime, of_runtime(runtime, again, start)?)))
    {
        let kind = NextKind::RuntimeNames { share: share(runtime.nameless) };
        return Some(NextStep::new(kind, command));
    }
    // What the kernel maps, such as [vdso], is no file.
    let is_much = |file: &&NamelessCode| file.path.starts_with('/') && share(file.time) >= NAMELESS;
    let file = names.nameless.iter().find(is_much)?;
    let (path, share) = (file.path.clone(), share(file.time));
    Some(match symbols_command(&path) {
        Some(_) if !again.gets_symbols => return None,
        Some(command) => NextStep::new(NextKind::Symbols { path, share }, command),
        None => NextStep::new(NextKind::Rebuild { path, share }, again.command("")),
    })
}

/// The command that gets the names of a runtime's code; `None` where there is none, or where the names are known.
fn of_runtime(runtime: &RuntimeNames, again: &ObservedAgain, start: Option<&str>) -> Option<String> {
    let is_missing = match runtime.source {
        NamesSource::Refused { .. } | NamesSource::Nothing => true,
        NamesSource::Map | NamesSource::Asked { .. } | NamesSource::Old { .. } => false,
    };
    let command = match (runtime.program, again.is_running) {
        (RuntimeProgram::Java, true) => {
            format!("jcmd {} Compiler.perfmap && {}", runtime.process, again.command(""))
        }
        (RuntimeProgram::Java, false) => {
            format!("JDK_JAVA_OPTIONS=-XX:+DumpPerfMapAtExit {}", again.command(""))
        }
        // A program that is started for the observation tells them.
        (RuntimeProgram::Node, _) => again.at("", again.frequency, again.duration, start?),
    };
    is_missing.then_some(command)
}

/// What the estimate of another machine says to do there.
enum Projected {
    /// Against what would be wrong with an object.
    Wrong(NextStep),
    /// Nothing would be.
    Well(NextStep),
}

impl Projected {
    fn into_step(self) -> NextStep {
        let (Self::Wrong(step) | Self::Well(step)) = self;
        step
    }
}

fn projected(judged: &JudgedReport) -> Option<Projected> {
    let projected = judged.projected.as_ref()?;
    let machine = &projected.projection.machine;
    if projected.projection.why_not.is_some() {
        return None;
    }
    let found = projected.objects.iter().find_map(|object| object.finding.as_ref());
    if let Some(step) = found.and_then(|finding| remedy(finding, Some(machine.clone()))) {
        return Some(Projected::Wrong(step));
    }
    let threads = projected.projection.threads;
    let command = format!("numa plan --machine {} -c {threads} --policy balanced", quoted(&[machine]));
    let step = NextStep::new(NextKind::Placement { machine: machine.clone() }, command);
    Some(match found {
        Some(finding) => Projected::Wrong(NextStep { r#do: Some(finding.remedy.words.clone()), ..step }),
        None => Projected::Well(step),
    })
}

/// What tells more of a program with which nothing is wrong here.
fn elsewhere(judged: &JudgedReport, again: &ObservedAgain) -> Option<NextStep> {
    let report = &judged.report;
    if report.regime != Regime::Precise || judged.projected.is_some() {
        return None;
    }
    // What is not at memory is nowhere remote.
    let at_memory = at_memory(judged).filter(|share| *share >= MIN_AT_MEMORY)?;
    // Where its pages would be is known of a program whose page faults are seen from its start on.
    if let Some(machine) = again.larger_machine.filter(|_| !again.is_running) {
        let command = again.command(&format!("--as {}", quoted(&[machine])));
        let worth = Some(FindingCost::at_most(CostBasis::CpuTime, 100.0 * at_memory));
        return Some(NextStep { worth, ..NextStep::new(NextKind::OtherMachine, command) });
    }
    (at_memory >= AT_MEMORY).then(|| NextStep::new(NextKind::CallChains, again.command("--flame flame")))
}

/// The part of the CPU time at memory outside of the caches.
fn at_memory(judged: &JudgedReport) -> Option<f64> {
    let time = judged.report.explanation.time?;
    let cpu = 1.0 - time.runnable - time.asleep;
    Some(((time.local + time.remote + time.unknown) / cpu.max(1e-9)).min(1.0))
}

#[cfg(test)]
mod tests;
