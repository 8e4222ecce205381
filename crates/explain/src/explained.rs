//! The objects of a result: what each is and how it is used.

use crate::code::{CodeName, PlaceTimes};
use crate::contended::Sharing;
use crate::explanation::{Explanation, NodeTime};
use crate::fields;
use crate::first_touch::TouchEvidence;
use crate::hint_faults::{self, ObjectHintFaults};
use crate::huge_pages::HugePageShares;
use crate::memory_policies::MemoryBinding;
use crate::object_use::{NodeShare, ObjectUse};
use crate::report::SampledObject;
use crate::runtime::ProgramRuntime;
use crate::share::ShareEstimate;
use crate::walk::MemoryWalk;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Code that uses an object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeShare {
    /// What it is.
    #[serde(flatten)]
    pub name: CodeName,
    /// Its part of the time at the object.
    pub share: f64,
}

/// A thread that touched pages of an object first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectTouch {
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The node of its CPU at that time.
    pub node: Option<u32>,
    /// Its part of the object's page faults.
    pub share: f64,
    /// By what that is known.
    pub known_by: TouchEvidence,
    /// The functions that touched it, innermost first, with lines where they are known.
    pub chain: Vec<String>,
}

/// An object that was accessed, with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedObject {
    /// What it is.
    #[serde(flatten)]
    pub object: SampledObject,
    /// The nodes of its pages; where the kernel does not say, of those that samples saw.
    pub home: Vec<NodeShare>,
    /// The nodes whose threads use it.
    pub used_from: Vec<NodeShare>,
    /// Time at it outside of the caches by pair of nodes, in ns; pages in use where time cannot be told.
    pub nodes: Vec<NodeTime>,
    /// Its part of the time of all objects at memory outside of the caches; of the pages in use where time cannot be told.
    pub time_share: f64,
    /// The part of that at memory of other nodes; `None` where nodes are not known or the machine has one.
    pub remote: Option<ShareEstimate>,
    /// The part of the time at it that its threads' caches served.
    pub in_cache: f64,
    /// The part of the time at it that threads contended for its lines.
    pub contended: f64,
    /// What hint faults tell of its users, if they were asked for and saw it.
    pub hint_faults: Option<ObjectHintFaults>,
    /// Who touched its pages first, that of most pages first; empty where that was not seen.
    pub first_touch: Vec<ObjectTouch>,
    /// The code that uses it, that with most time first.
    pub used_by: Vec<CodeShare>,
    /// What judges need beside that.
    #[serde(skip)]
    pub facts: ObjectFacts,
}

/// What is known of an object and of its process, for those who judge its use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectFacts {
    /// Its use.
    pub used: ObjectUse,
    /// How instructions walk through it.
    pub walk: Option<MemoryWalk>,
    /// What its most contended line is contended for.
    pub sharing: Option<Sharing>,
    /// What threads use of that line, where it is known.
    pub fields: Vec<String>,
    /// The part of all CPU time that waited for it; `None` where time cannot be told.
    pub of_cpu_time: Option<f64>,
    /// The part of all CPU time that was in the kernel, where that can be told.
    pub kernel: Option<f64>,
    /// The part of its process's memory that is in huge pages, if that is known.
    pub huge_pages: Option<f64>,
    /// What binds most of its memory to nodes, if anything is known to.
    pub bound: Option<MemoryBinding>,
    /// What the program is written with.
    pub runtime: ProgramRuntime,
}

/// What is known beside the samples of objects.
#[derive(Debug)]
pub struct ObjectContext<'a> {
    /// The objects, by their places in the list.
    pub objects: Vec<SampledObject>,
    /// Who touched them first, by the same places.
    pub first_touch: BTreeMap<u32, Vec<ObjectTouch>>,
    /// How instructions walk through them, by the same places.
    pub walks: &'a HashMap<u32, MemoryWalk>,
    /// The parts of their memory in huge pages, by process.
    pub huge_pages: &'a HugePageShares,
    /// What hint faults tell of them, by their places.
    pub hint_faults: BTreeMap<u32, ObjectHintFaults>,
    /// What binds most of their memory, by their places.
    pub bound: BTreeMap<u32, MemoryBinding>,
    /// What they are written with, by process.
    pub runtimes: HashMap<u32, ProgramRuntime>,
}

impl Explanation {
    /// The nodes of all pages of objects, which samples see a part of.
    pub fn place_objects(&mut self, homes: &BTreeMap<u32, Vec<NodeShare>>) {
        for used in &mut self.uses {
            if let Some(home) = homes.get(&used.object) {
                used.home.clone_from(home);
            }
        }
    }

    /// Adds what hint faults tell where samples are too few, and objects that only hint faults saw.
    pub fn complete_objects(&mut self, hinted: &BTreeMap<u32, ObjectUse>) {
        for used in &mut self.uses {
            if let Some(better) =
                hinted.get(&used.object).and_then(|hinted| hint_faults::completed(used, hinted))
            {
                *used = better;
            }
        }
        let seen: BTreeSet<u32> = self.uses.iter().map(|used| used.object).collect();
        let only = hinted.keys().filter(|object| !seen.contains(object));
        self.uses.extend(only.map(|object| ObjectUse { object: *object, ..ObjectUse::default() }));
    }

    /// The objects, those with most time first. Lines name them by their new places.
    pub fn explain_objects(&mut self, context: &ObjectContext<'_>) -> Vec<ExplainedObject> {
        let mut all: Vec<(u32, ExplainedObject)> = Vec::new();
        let outside: u64 = self.uses.iter().map(ObjectUse::outside).sum();
        for used in &self.uses {
            if let Some(object) = context.objects.get(used.object as usize) {
                let share = used.outside() as f64 / outside.max(1) as f64;
                all.push((used.object, explained(self, used, object, share, context)));
            }
        }
        all.sort_by(|(a, one), (b, other)| other.time_share.total_cmp(&one.time_share).then(a.cmp(b)));
        let (places, objects): (Vec<u32>, Vec<ExplainedObject>) = all.into_iter().unzip();
        self.renumber_objects(&places);
        objects
    }

    /// Names the objects of lines by their new places; `old` has the old place at each of them.
    pub fn renumber_objects(&mut self, old: &[u32]) {
        let new: HashMap<u32, u32> = old.iter().zip(0..).map(|(old, new)| (*old, new)).collect();
        for line in &mut self.lines {
            line.object = new.get(&line.object).copied().unwrap_or(u32::MAX);
        }
    }

    /// The part of the CPU time of all threads that a time of samples is.
    fn of_cpu_time(&self, time: u64) -> Option<f64> {
        let sampled: u64 = self.functions.iter().map(|code| code.time.total()).sum();
        Some(time as f64 / sampled.max(1) as f64 * (1.0 - self.kernel()?))
    }

    /// The part of the CPU time of all threads that was in the kernel.
    fn kernel(&self) -> Option<f64> {
        let shares = self.time.as_ref()?;
        let user =
            shares.computing + shares.cached + shares.near + shares.far + shares.unknown + shares.contended;
        (user > 0.0).then(|| shares.kernel / (user + shares.kernel))
    }
}

/// The thread that allocated nearly all of an object whose pages are on its node: on a machine of several, and where nobody had
/// the addresses before, it is likely to have touched them.
fn touched_by_homes(used: &ObjectUse, object: &SampledObject) -> Option<ObjectTouch> {
    const NEARLY_ALL: f64 = 0.9;
    let by = object.blocks.most(NEARLY_ALL).filter(|_| object.blocks.handed_from().is_empty())?;
    used.remote?;
    let home = used.home.iter().find(|home| home.node == by.node && home.share >= NEARLY_ALL)?;
    let (known_by, chain) = (TouchEvidence::Homes, Vec::new());
    Some(ObjectTouch { thread: by.thread, node: Some(by.node), share: home.share, known_by, chain })
}

fn explained(
    explanation: &Explanation,
    used: &ObjectUse,
    object: &SampledObject,
    share: f64,
    context: &ObjectContext<'_>,
) -> ExplainedObject {
    let line = explanation.lines.iter().find(|line| line.object == used.object);
    let PlaceTimes { private_cache, shared_cache, contended, .. } = used.time;
    let part = |time: u64| time as f64 / used.time.total().max(1) as f64;
    let code = |code: &crate::code::CodeTime| CodeShare {
        name: code.name.clone(),
        share: code.time.total() as f64
            / used.used_by.iter().map(|code| code.time.total()).sum::<u64>().max(1) as f64,
    };
    ExplainedObject {
        object: object.clone(),
        home: used.home.clone(),
        used_from: used.used_from(),
        nodes: used.pairs.clone(),
        time_share: share,
        remote: used.remote,
        in_cache: part(private_cache + shared_cache),
        contended: part(contended),
        hint_faults: context.hint_faults.get(&used.object).cloned(),
        first_touch: match context.first_touch.get(&used.object) {
            Some(seen) => seen.clone(),
            None => touched_by_homes(used, object).into_iter().collect(),
        },
        used_by: used.used_by.iter().map(code).collect(),
        facts: ObjectFacts {
            used: used.clone(),
            walk: context.walks.get(&used.object).cloned(),
            sharing: line.map(|line| line.sharing),
            fields: line.map_or_else(Vec::new, fields::names),
            of_cpu_time: explanation.of_cpu_time(used.time.outside()),
            kernel: explanation.kernel(),
            huge_pages: context.huge_pages.of(object.pid),
            bound: context.bound.get(&used.object).cloned(),
            runtime: context.runtimes.get(&object.pid).copied().unwrap_or_default(),
        },
    }
}
