//! The answer of an observation.

use super::objects::ObjectMaps;
use super::{Explainer, memory_nodes};
use crate::chain_names::ChainNames;
use crate::collector::Collector;
use crate::cpu_waits::CpuWaits;
use crate::fields::{self, AddressedObject};
use crate::flame::{FlameGraph, FlameUnit};
use crate::hint_faults::HintFaults;
use crate::hint_windows::HintWindows;
use crate::processes::Processes;
use crate::projection::{self, ProjectedMachine, Projection};
use crate::python::PythonTime;
use crate::remote_costs::RemoteCosts;
use crate::report::{
    ExplainReport, Explained, FlameGraphs, MissingSamples, ProjectedFacts, Regime, SampledThread,
    SeenProcess, UNKNOWN_COMMAND,
};
use crate::sources::{self, AnnotatedSource};
use crate::waits::{ThreadWaits, WaitScene};
use crate::{Explanation, FaultTime, Surveyed};
use numakit_model::topology::Topology;
use numakit_sampling::Landing;
use numakit_sampling::calibration::MachineKind;
use numakit_sys::clock::{self, EndedUsage};
use std::collections::BTreeSet;

/// A thread with this much CPU time should have samples: four periods of 199 Hz.
const MIN_CPU_TIME: u64 = 20_000_000;

impl Explainer {
    /// The flame graphs: the call chains whose time went to memory, and the chains that touched the resident memory first.
    fn flame(&mut self, explanation: &Explanation) -> FlameGraphs {
        let Self { collector, processes, residence, started, .. } = self;
        let mut names = ChainNames::new(&collector.calls, processes);
        let is_precise = explanation.time.is_some();
        let time = is_precise.then(|| {
            let title = "Time at memory outside of the caches, by call chain";
            FlameGraph::new(title, FlameUnit::Ns, &explanation.chains, &mut names)
        });
        let has_touchers = residence.touched.has_any();
        let peak = residence.peak();
        let resident = has_touchers.then(|| {
            let seconds = peak.time.saturating_sub(*started) as f64 / 1e9;
            let title =
                format!("Resident memory after {seconds:.1} s, by the call chain that touched it first");
            FlameGraph::new(&title, FlameUnit::Bytes, &peak.by_chain(), &mut names)
        });
        FlameGraphs { time, resident }
    }

    /// Names the fields that threads use of contended lines.
    fn name_fields(&mut self, explanation: &mut Explanation) {
        let Self { collector, processes, .. } = self;
        let pids: Vec<u32> = processes.numbers();
        fields::name(&mut explanation.lines, &mut |user, place, address| {
            addressed(collector, processes, (pids.get(user.process as usize), place), address)
        });
    }

    /// What the command and its descendants used; `None` as long as the command runs.
    fn ended_usage(&self, complete: bool) -> Option<EndedUsage> {
        let now = clock::ended_children();
        let has_ended = complete && self.observed.attached.is_empty() && now != self.ended_before;
        has_ended.then(|| EndedUsage {
            user: now.user - self.ended_before.user,
            kernel: now.kernel - self.ended_before.kernel,
            faults: now.faults - self.ended_before.faults,
        })
    }

    /// What the same run would be on another machine.
    fn projection(
        &mut self,
        machine: &ProjectedMachine,
        sampled: &[SampledThread],
        here: &Explanation,
    ) -> ProjectedFacts {
        let costs = RemoteCosts::of(&machine.topology);
        let impossible = |why: &str| ProjectedFacts {
            projection: Projection::impossible(&machine.name, why),
            objects: Vec::new(),
            costs: RemoteCosts::default(),
        };
        if here.time.is_none() {
            return impossible("samples of this machine do not tell time");
        }
        if !self.residence.touched.has_any() {
            let why = "no page faults were seen; that needs performance events (--method perf) from the start of \
                       the program on";
            return impossible(why);
        }
        let processes: BTreeSet<u32> = sampled.iter().map(|thread| thread.pid).collect();
        let seen = self.accounts.busy(0).filter(|(pid, _)| processes.contains(pid));
        let threads: BTreeSet<(u32, u32)> =
            sampled.iter().map(|thread| (thread.pid, thread.tid)).chain(seen).collect();
        let nodes = projection::place(&threads, machine);
        if nodes.is_empty() {
            return impossible("its threads have no place on that machine");
        }
        let touched = &self.residence.touched;
        let observed = projection::observations(&self.collector.observations, sampled, &nodes, touched);
        let known = Surveyed {
            times: here.threads,
            caches: machine.caches(nodes.len()).unwrap_or(here.caches),
            is_precise: true,
            has_nodes: true,
            traffic: None,
            sizes: self.collector.sizes(&self.processes),
        };
        let mut there = Explanation::new(&observed, known, &mut self.processes);
        let mut objects = self.objects(&mut there, ObjectMaps::default(), &HintFaults::default());
        for object in &mut objects {
            let pids = &object.object.processes;
            let node = |thread: u32| pids.iter().find_map(|pid| nodes.get(&(*pid, thread)).copied());
            object.first_touch.iter_mut().for_each(|by| by.node = node(by.thread));
        }
        let time = there.time.unwrap_or_default();
        let outside = time.local + time.remote + time.unknown;
        let projection = Projection {
            machine: machine.name.clone(),
            threads: nodes.len(),
            why_not: None,
            remote_share: there.remote_share,
            unknown: if outside > 0.0 { time.unknown / outside } else { 0.0 },
            nodes: there.nodes,
        };
        ProjectedFacts { projection, objects, costs }
    }

    /// The same on the machine on which the run is to be projected, if the user asked for that.
    fn projected_facts(&mut self, sampled: &[SampledThread], here: &Explanation) -> Option<ProjectedFacts> {
        let machine = self.projected.take();
        let facts = machine.as_ref().map(|machine| self.projection(machine, sampled, here));
        self.projected = machine;
        facts
    }

    /// The threads that were sampled, with their names.
    fn named_threads(&self) -> Vec<SampledThread> {
        let mut threads = self.collector.sampled_threads.clone();
        for thread in &mut threads {
            thread.name = self.accounts.name(thread.pid, thread.tid).unwrap_or_default().to_owned();
        }
        threads
    }

    /// The processes that were observed.
    fn seen_processes(&self) -> Vec<SeenProcess> {
        let seen = |pid: u32| SeenProcess {
            pid,
            name: self.accounts.name(pid, pid).unwrap_or_default().to_owned(),
            joined: !self.first.contains(&pid),
            ended: self.ended.contains(&pid),
        };
        self.processes.numbers().into_iter().map(seen).collect()
    }

    /// What is missing beside the samples of these threads.
    fn missing_samples(&self, threads: &[SampledThread]) -> MissingSamples {
        let has_sample = |(pid, tid): &(u32, u32)| threads.iter().any(|t| (t.pid, t.tid) == (*pid, *tid));
        let losses = self.method.losses();
        MissingSamples {
            lost: losses.total(),
            thinned: self.collector.thinned,
            late: self.late,
            threads: self.accounts.busy(MIN_CPU_TIME).filter(|key| !has_sample(key)).count() as u64,
            faults: losses.faults,
            without_faults: losses.without_faults,
            allocations: self.log.as_ref().map_or(0, |log| log.losses().full),
        }
    }

    /// What threads waited for while they did not run.
    fn waits(&mut self, complete: bool, end: u64) -> ThreadWaits {
        let Self { waits, accounts, collector, processes, java, .. } = self;
        let mut scene = WaitScene { accounts, collector, processes, java };
        waits.as_mut().map(|waits| waits.answer(&mut scene, complete, end)).unwrap_or_default()
    }

    /// What is known beside the samples.
    fn surveyed(&self, complete: bool) -> Surveyed {
        let caches = self.caches();
        Surveyed {
            times: self.accounts.total(self.ended_usage(complete)),
            caches,
            is_precise: matches!(self.method.landing(), Landing::Behind | Landing::OneFurther),
            has_nodes: memory_nodes(&self.topology).len() > 1,
            traffic: self.collector.traffic(caches),
            sizes: self.collector.sizes(&self.processes),
        }
    }

    /// What programs of Python did, in terms of Python.
    fn python_time(&self) -> PythonTime {
        self.python.as_ref().map(|watch| watch.answer(&self.processes)).unwrap_or_default()
    }

    /// Why threads waited for a CPU.
    fn cpu_waits(&mut self, now: u64) -> CpuWaits {
        let Self { cpu_waits, accounts, .. } = self;
        cpu_waits.as_mut().map(|watch| watch.waits(accounts, now)).unwrap_or_default()
    }

    /// The command line that starts the program again.
    fn command(&self) -> String {
        match self.observed.attached.is_empty() {
            true => self.observed.program.clone(),
            false => self.start.clone().unwrap_or_else(|| UNKNOWN_COMMAND.to_owned()),
        }
    }

    /// The source lines of the functions with most time, once the observation has ended.
    fn sources(&self, explanation: &Explanation, complete: bool) -> Vec<AnnotatedSource> {
        match complete {
            true => sources::annotate(&explanation.source_lines, &mut |file| self.processes.source(file)),
            false => Vec::new(),
        }
    }

    /// All that is known so far. `complete` says whether the observation has ended.
    pub fn explained(&mut self, complete: bool, exit_status: Option<i32>) -> Explained {
        self.collector.attribute_blocks();
        self.take_hint_faults();
        let processes = self.processes.numbers();
        // To answer takes seconds on a busy machine, which do not belong to the observation.
        let end = clock::monotonic();
        self.accounts.visit(&processes, end);
        let cpu_waits = self.cpu_waits(end);
        self.take_names(complete);
        if complete {
            self.hints.iter_mut().for_each(HintWindows::close);
        }
        let threads = self.named_threads();
        let missing = self.missing_samples(&threads);
        let landing = self.method.landing();
        let known = self.surveyed(complete);
        let mut explanation = Explanation::new(&self.collector.observations, known, &mut self.processes);
        explanation.place_objects(&self.homes());
        explanation.waits = self.waits(complete, end);
        (explanation.spins, explanation.ranks, explanation.teams) = self.waiting(&explanation.waits.in_teams);
        explanation.kernel = self.kernel.functions(&mut self.processes);
        let (of_kernel, grown_pages) = (self.kernel.faulting(), self.accounts.grown_pages());
        explanation.faulting = FaultTime { of_kernel, grown_pages };
        explanation.python = self.python_time();
        let flame = self.flame(&explanation);
        if complete {
            self.name_fields(&mut explanation);
        }
        let objects = self.objects_with_hints(&mut explanation, complete);
        let sources = self.sources(&explanation, complete);
        let projection = self.projected_facts(&threads, &explanation);
        let report = ExplainReport {
            version: ExplainReport::VERSION,
            regime: regime(landing),
            machine: machine(&self.machine, &self.topology),
            method: self.observed.method.clone(),
            method_reason: self.observed.method_reason.clone(),
            rate: self.observed.frequency.into(),
            seconds: end.saturating_sub(self.started) as f64 / 1e9,
            program: self.observed.program.clone(),
            complete,
            exit_status,
            missing,
            explanation,
            processes: self.seen_processes(),
            threads_sampled: threads,
            hint_faults: self.hints.as_ref().map(HintWindows::counts),
            flame,
            sources,
            names: self.names_report(complete),
        };
        Explained {
            report,
            cpu_waits,
            objects,
            attached: self.observed.attached.clone(),
            command: self.command(),
            open_loops: self.processes.open_loops(),
            costs: RemoteCosts::of(&self.topology),
            cured: complete.then(|| self.cure_program()),
            projected: projection,
        }
    }
}

/// The object at a place of the list, as the process with this number has it at an address.
fn addressed(
    collector: &Collector,
    processes: &mut Processes,
    (pid, place): (Option<&u32>, u32),
    address: u64,
) -> Option<AddressedObject> {
    let mut own = collector.listed(place).filter(|(process, _)| Some(process) == pid);
    own.find_map(|(process, object)| processes.addressed(process, object, address))
}

fn regime(landing: Landing) -> Regime {
    match landing {
        Landing::Behind | Landing::OneFurther => Regime::Precise,
        Landing::BlockStart => Regime::Block,
        Landing::Other => Regime::Unknown,
    }
}

/// The machine in words, by which results of different machines are recognised and not compared.
fn machine(kind: &MachineKind, topology: &Topology) -> String {
    let processor = &kind.processor;
    format!("{processor}, nodes {}, CPUs {}", topology.node_ids(), topology.online)
}
