//! `numa` alone.

use crate::{Examples, GlobalArgs, Group, VERBS};
use anyhow::Context;
use clap::Args;
use numakit_formulas::Catalog;
use numakit_model::Topology;
use numakit_observation::request::ObservationRequest;
use numakit_processes::{BusyProgram, Survey};
use numakit_recording::Priority;
use numakit_sensors::Selection;
use numakit_sys::clock;
use numakit_sys::proc::machine;
use numakit_sys::stdio::print;
use numakit_sys::{SysRoot, tty};
use numakit_terminal::overview::{MachineLook, SeenMachine, text};
use numakit_top::follow::{self, Follower};
use numakit_top::machine::MachineMeters;
use numakit_top::show::ScreenEvent;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Show this machine, what is wrong on it now, and what to type next
///
/// It looks at the machine for a second.
#[derive(Debug, Args)]
pub struct OverviewArgs {}

/// Verbs of which an example is shown.
const SHOWN: [&str; 6] = ["explain", "run", "top", "plan", "record", "doctor"];
/// What threads can wait for, by the kernel's file, and in words.
const WAITED: [(&str, &str); 3] = [("cpu", "a CPU"), ("memory", "memory"), ("io", "storage")];
/// How often the machine is sampled.
const INTERVAL: Duration = Duration::from_millis(100);
/// How often the end is checked.
const CHECK: Duration = Duration::from_millis(50);

impl OverviewArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [("numa", "shows it"), ("numa overview", "the same")];

    /// Looks, and prints what it saw.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("it looks at this machine while it works")?;
        let root = SysRoot::host();
        let topology = numakit_topology::read(&root).context("cannot read the topology")?;
        let look = match look(&root, &topology) {
            Ok(seen) => MachineLook::Seen(Box::new(seen)),
            Err(error) => MachineLook::Failed { why: format!("{error:#}") },
        };
        let shown = |name: &str| VERBS.iter().find(|verb| verb.group == Group::Front && verb.name == name);
        let examples: Vec<_> = SHOWN.into_iter().filter_map(shown).map(|verb| verb.examples[0]).collect();
        print(text(&topology, &look, &examples, tty::columns()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What a second shows.
fn look(root: &SysRoot, topology: &Topology) -> anyhow::Result<SeenMachine> {
    let request = ObservationRequest {
        root,
        topology: topology.clone(),
        selection: &Selection::default(),
        every: INTERVAL,
        chosen: None,
        command: &[],
        sample_rate: 0,
        cpu: None,
        priority: Priority::Normal,
        original_fifo: Default::default(),
        skip_unavailable: true,
        verbose: false,
    };
    let prepared = request.prepare()?;
    let header = prepared.setup.header.clone();
    let formulas = Arc::new(Catalog::built_in().clone());
    let (mut session, waker) = prepared.open()?;
    let ring = Arc::new(follow::ring(&header)?);
    let mut survey = Survey::new(root, topology, None).ok();
    let before = clock::monotonic();
    session.start(prepared.setup.sensors, prepared.settings, Some(Arc::clone(&ring)))?;
    let (to, events) = channel();
    let machine = Arc::new(MachineMeters::new(&header, &formulas));
    Follower { header, formulas, machine, to }.start(ring)?;
    let found = std::thread::Builder::new().name("look".into()).spawn(move || {
        let found = first_findings(&events);
        waker.stop();
        found
    })?;
    session.run(CHECK, |_| {})?;
    let found = found.join().ok().flatten();
    let (findings, _) = found.context("the observation ended before it had seen anything")?;
    let samples = survey.as_mut().map(|survey| survey.measure(&|| false)).unwrap_or_default();
    let seconds = (clock::monotonic() - before) as f64 / 1e9;
    let waited = WAITED.iter().filter_map(|(file, what)| Some((*what, machine::waited_minute(root, file)?)));
    Ok(SeenMachine { findings, seconds, minute: waited.collect(), busy: BusyProgram::find(root, &samples) })
}

/// The first findings; `None` if the observation ends before.
fn first_findings(events: &Receiver<ScreenEvent>) -> Option<(numakit_findings::finding::Findings, f64)> {
    events.iter().find_map(|event| match event {
        ScreenEvent::Findings(findings, seconds) => Some((*findings, seconds)),
        _ => None,
    })
}
