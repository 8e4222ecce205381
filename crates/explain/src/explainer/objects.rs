//! What is known of the objects of an observation.

use super::Explainer;
use crate::CureFacts;
use crate::chain_names::ChainNames;
use crate::collector::Collector;
use crate::explained::{ObjectContext, ObjectTouch};
use crate::first_touch::{FirstTouch, TouchEvidence};
use crate::hint_faults::HintFaults;
use crate::member_path::pointee::CallResult;
use crate::members::{self, ObjectMembers, TypedMemory, TypedObjects};
use crate::memory_policies::MemoryBinding;
use crate::object_use::NodeShare;
use crate::objects::ObjectKind;
use crate::observation::Observation;
use crate::processes::Processes;
use crate::python::ScriptShares;
use crate::runtime::MallocLibrary;
use crate::{ExplainedObject, Explanation, SampledObject};
use numakit_sys::SysRoot;
use numakit_sys::huge_pages::Setting;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
/// Threads and call chains that touched an object first, at most.
const MAX_TOUCHES: usize = 3;
/// Maximum number of chains for each object before they have names. Several of these become one afterwards, when their
/// instructions belong to one line.
const MAX_CHAINS: usize = 32;
/// Functions of their chains.
const MAX_CALLERS: usize = 8;

/// What is known of objects by their places, on this machine.
#[derive(Default)]
pub(super) struct ObjectMaps {
    bound: BTreeMap<u32, MemoryBinding>,
    members: BTreeMap<u32, ObjectMembers>,
    cures: BTreeMap<u32, CureFacts>,
}

impl Explainer {
    /// Who touched the objects first, with names.
    fn first_touch(&mut self) -> BTreeMap<u32, Vec<ObjectTouch>> {
        let Self { collector, processes, .. } = self;
        let mut names = ChainNames::new(&collector.calls, processes);
        let mut touch = |FirstTouch { by, share }: FirstTouch, known_by: TouchEvidence| {
            let mut chain = names.of(by.chain);
            chain.truncate(MAX_CALLERS);
            let chain = chain.iter().map(ToString::to_string).collect();
            ObjectTouch { thread: by.thread, node: by.node, share, known_by, chain }
        };
        let mut objects: BTreeMap<u32, Vec<ObjectTouch>> = BTreeMap::new();
        for seen in [&collector.touches, &collector.sampled_touches] {
            for (object, touches) in seen.by_object(MAX_CHAINS) {
                let named = || touches.into_iter().map(|by| touch(by, seen.evidence));
                objects.entry(object).or_insert_with(|| together(named()));
            }
        }
        objects
    }

    /// The nodes of all pages of each object, as they were when memory was looked at last.
    pub(super) fn homes(&mut self) -> BTreeMap<u32, Vec<NodeShare>> {
        let Self { collector, processes, residence, .. } = self;
        let latest = residence.latest();
        latest.homes(|piece| collector.object_at(piece.process, piece.address, latest.time, processes))
    }

    /// The objects most of whose memory is bound to nodes.
    fn bound(&mut self) -> BTreeMap<u32, MemoryBinding> {
        let Self { collector, processes, residence, policies, .. } = self;
        let latest = residence.latest();
        latest.bound(
            |piece| collector.object_at(piece.process, piece.address, latest.time, processes),
            |piece| policies.at(piece.process, piece.address),
        )
    }

    /// The part of each object's memory that is in huge pages.
    fn huge_pages(&mut self) -> BTreeMap<u32, f64> {
        let Self { collector, processes, residence, huge_pages, .. } = self;
        let latest = residence.latest();
        let mut parts = latest.means(
            |piece| collector.object_at(piece.process, piece.address, latest.time, processes),
            |piece| huge_pages.at(piece.process, piece.address),
        );
        // Of small blocks only those addresses are known that samples saw.
        let mut sampled: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
        let accesses = collector.observations.iter().filter_map(Observation::access);
        for access in accesses.filter(|access| !parts.contains_key(&access.object)) {
            let process = collector.listed(access.object).next().map(|(process, _)| process);
            let part = process.and_then(|process| huge_pages.at(process, access.address));
            if let Some(part) = part {
                let (sum, count) = sampled.entry(access.object).or_default();
                (*sum, *count) = (*sum + part, *count + 1);
            }
        }
        parts.extend(sampled.into_iter().map(|(object, (sum, count))| (object, sum / f64::from(count))));
        parts
    }

    /// The members of the objects that samples accessed, once the observation has ended.
    fn members(&mut self, complete: bool) -> BTreeMap<u32, ObjectMembers> {
        if !complete {
            return BTreeMap::new();
        }
        let Self { collector, processes, .. } = self;
        let pids: Vec<u32> = processes.numbers();
        members::of(&collector.observations, &mut Typed { collector, processes, pids })
    }

    /// The objects with all that is known of them.
    pub(super) fn objects(
        &mut self,
        explanation: &mut Explanation,
        known: ObjectMaps,
        hints: &HintFaults,
    ) -> Vec<ExplainedObject> {
        let ObjectMaps { bound, members, cures } = known;
        let hinted = hints.objects();
        let huge_pages = self.huge_pages();
        explanation.complete_objects(&hinted);
        let objects = self.collector.sampled_objects(&mut self.processes);
        let python = self.python_of_objects(objects.len());
        explanation.explain_objects(&ObjectContext {
            pids: self.processes.numbers(),
            python,
            runtimes: objects.iter().map(|object| (object.pid, self.processes.runtime(object.pid))).collect(),
            mallocs: self.mallocs(&objects),
            huge_page_setting: Setting::read(&SysRoot::host()),
            first_touch: self.first_touch(),
            objects,
            walks: &self.collector.walks,
            huge_pages,
            bound,
            members,
            hint_faults: hints.summaries(&hinted),
            cures,
        })
    }

    /// The library whose `malloc` gave the objects' memory: blocks that it logged, else by an address that a sample saw.
    fn mallocs(&mut self, objects: &[SampledObject]) -> BTreeMap<u32, MallocLibrary> {
        let Self { collector, processes, .. } = self;
        let accesses = collector.observations.iter().filter_map(Observation::access);
        let seen: HashMap<u32, u64> = accesses.map(|access| (access.object, access.address)).collect();
        let library = |(place, object): (u32, &SampledObject)| match object.kind {
            ObjectKind::Allocated => Some((place, processes.malloc(object.pid))),
            ObjectKind::Mapping => Some((place, processes.malloc_at(object.pid, *seen.get(&place)?)?)),
            _ => None,
        };
        (0..).zip(objects).filter_map(library).collect()
    }

    /// The functions of Python that use the objects, and those that allocated them, by the places of objects.
    fn python_of_objects(&self, objects: usize) -> [BTreeMap<u32, ScriptShares>; 2] {
        let Self { python, collector, processes, .. } = self;
        let uses = python.as_ref().map(|watch| watch.uses(collector, processes)).unwrap_or_default();
        let allocation = |place: u32| {
            let mut of = collector.listed(place);
            Some((place, of.find_map(|(pid, object)| processes.allocated_by(pid, object))?))
        };
        [uses, (0..objects as u32).filter_map(allocation).collect()]
    }

    /// The objects, with what hint faults saw of them.
    pub(super) fn objects_with_hints(
        &mut self,
        explanation: &mut Explanation,
        complete: bool,
    ) -> Vec<ExplainedObject> {
        let (bound, members) = (self.bound(), self.members(complete));
        let cures = match complete {
            true => self.cures(explanation),
            false => BTreeMap::new(),
        };
        let known = ObjectMaps { bound, members, cures };
        let hints = self.hints.take();
        let none = HintFaults::default();
        let seen = hints.as_ref().map_or(&none, |hints| &hints.faults);
        let objects = self.objects(explanation, known, seen);
        self.hints = hints;
        objects
    }
}

/// What is known of the objects of the list.
struct Typed<'a> {
    collector: &'a Collector,
    processes: &'a mut Processes,
    pids: Vec<u32>,
}

impl TypedObjects for Typed<'_> {
    fn memory(&mut self, process: u32, place: u32, address: u64) -> Option<TypedMemory> {
        let pid = *self.pids.get(process as usize)?;
        let mut own = self.collector.listed(place).filter(|(of, _)| *of == pid);
        own.find_map(|(_, object)| self.processes.typed(pid, object, address))
    }

    fn call(&mut self, pid: u32, after: u64) -> Option<(PathBuf, CallResult)> {
        self.processes.call_result(pid, after)
    }
}

/// The functions of the call chain of a first touch, without their lines.
fn functions(touch: &ObjectTouch) -> impl Iterator<Item = &str> {
    touch.chain.iter().map(|call| call.rsplit_once(" (").map_or(call.as_str(), |(function, _)| function))
}

/// Merges touches of the same thread by the same functions. The largest part comes first.
fn together(touches: impl Iterator<Item = ObjectTouch>) -> Vec<ObjectTouch> {
    let mut all: Vec<ObjectTouch> = Vec::new();
    for touch in touches {
        let known = all.iter_mut().find(|known| {
            (known.thread, known.node) == (touch.thread, touch.node) && functions(known).eq(functions(&touch))
        });
        match known {
            Some(known) => known.share += touch.share,
            None => all.push(touch),
        }
    }
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all.truncate(MAX_TOUCHES);
    all
}
