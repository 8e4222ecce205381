//! The objects of a result: what each is and how it is used.

use crate::code::{CodeName, PlaceTimes};
use crate::contended::Sharing;
use crate::cure_facts::CureFacts;
use crate::explanation::{Explanation, NodeTime};
use crate::fields;
use crate::first_touch::TouchEvidence;
use crate::hint_faults::{self, ObjectHintFaults};
use crate::members::ObjectMembers;
use crate::memory_policies::MemoryBinding;
use crate::object_use::{NodeShare, ObjectUse};
use crate::python::ScriptShares;
use crate::report::SampledObject;
use crate::runtime::{MallocLibrary, ProgramRuntime};
use crate::share::ShareEstimate;
use crate::walk::MemoryWalk;
use numakit_sys::huge_pages::Setting;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Code that uses an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CodeShare {
    /// What it is.
    #[serde(flatten)]
    pub name: CodeName,
    /// Its part of the time at the object, from 0 to 1.
    pub share: f64,
}

/// A thread that touched pages of an object first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectTouch {
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The node of its CPU at the time of the fault.
    pub node: Option<u32>,
    /// Its part of the object's page faults.
    pub share: f64,
    /// What shows that it touched the object.
    pub known_by: TouchEvidence,
    /// The functions that touched it, innermost first, with lines where they are known.
    pub chain: Vec<String>,
}

/// An object that was accessed, with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainedObject {
    /// What it is.
    #[serde(flatten)]
    pub object: SampledObject,
    /// The nodes of the object's pages. Where the kernel does not tell them, only pages that samples saw count.
    pub home: Vec<NodeShare>,
    /// The nodes whose threads use it.
    pub used_from: Vec<NodeShare>,
    /// Time at it outside of the caches by pair of nodes, in ns; pages in use where time cannot be told.
    pub nodes: Vec<NodeTime>,
    /// The object's part of the time that all objects spent outside of the caches. Where samples do not tell time, its part
    /// of the pages in use.
    pub time_share: f64,
    /// The part of `time_share` that is at memory of other nodes; `None` where nodes are not known or the machine has one.
    pub remote: Option<ShareEstimate>,
    /// The part of the time at the object that its threads' caches served.
    pub in_cache: f64,
    /// The part of the time at the object in which threads contended for its lines.
    pub contended: f64,
    /// What hint faults show of the threads that use it, if hint faults were asked for and some were at this object.
    pub hint_faults: Option<ObjectHintFaults>,
    /// Who touched its pages first. The thread that touched most pages comes first; empty where no first touch was seen.
    pub first_touch: Vec<ObjectTouch>,
    /// The code that uses it. The code with most time comes first.
    pub used_by: Vec<CodeShare>,
    /// The members of a structure that samples accessed, where the object's type is known.
    pub members: Option<ObjectMembers>,
    /// The functions of Python that use it, by looks at the time of samples.
    #[serde(default, skip_serializing_if = "ScriptShares::is_empty")]
    pub python_use: ScriptShares,
    /// The functions of Python that allocated it, by looks right after allocations.
    #[serde(default, skip_serializing_if = "ScriptShares::is_empty")]
    pub python_allocation: ScriptShares,
    /// What rules need to judge the object, beside all that.
    #[serde(skip)]
    pub facts: ObjectFacts,
}

/// What is known of an object and of its process, for the rules that judge its use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectFacts {
    /// Its use.
    pub used: ObjectUse,
    /// How instructions walk through it.
    pub walk: Option<MemoryWalk>,
    /// How threads share the object's most contended line.
    pub sharing: Option<Sharing>,
    /// The fields that threads use of that line, where they are known.
    pub fields: Vec<String>,
    /// The processes of these threads.
    pub line_processes: Vec<u32>,
    /// The part of all CPU time that waited for the object; `None` where samples do not tell time.
    pub of_cpu_time: Option<f64>,
    /// The part of all CPU time that was in the kernel, where that can be told.
    pub kernel: Option<f64>,
    /// The part of its memory that is in huge pages, if that is known.
    pub huge_pages: Option<f64>,
    /// What binds most of the object's memory to nodes; `None` if nothing is known to bind it.
    pub bound: Option<MemoryBinding>,
    /// What the program is written with.
    pub runtime: ProgramRuntime,
    /// The library whose `malloc` gave its memory, if it is known that one did.
    pub malloc: Option<MallocLibrary>,
    /// To which memory the kernel gives huge pages; `None` if it has none.
    pub huge_page_setting: Option<Setting>,
    /// What a cure needs, once the observation has ended and where an address of the object was seen.
    pub cure: Option<CureFacts>,
}

/// What is known of objects from other sources than samples.
#[derive(Debug)]
pub struct ObjectContext<'a> {
    /// The objects, by their places in the list.
    pub objects: Vec<SampledObject>,
    /// Who touched the objects first, by the same places.
    pub first_touch: BTreeMap<u32, Vec<ObjectTouch>>,
    /// How instructions walk through the objects, by the same places.
    pub walks: &'a HashMap<u32, MemoryWalk>,
    /// The parts of their memory in huge pages, by their places.
    pub huge_pages: BTreeMap<u32, f64>,
    /// The members of the objects, by their places.
    pub members: BTreeMap<u32, ObjectMembers>,
    /// What hint faults show of the objects, by their places.
    pub hint_faults: BTreeMap<u32, ObjectHintFaults>,
    /// The functions of Python that use the objects, and those that allocated them, by their places.
    pub python: [BTreeMap<u32, ScriptShares>; 2],
    /// What binds most of the objects' memory, by their places.
    pub bound: BTreeMap<u32, MemoryBinding>,
    /// The processes, by their places in the list of processes.
    pub pids: Vec<u32>,
    /// What the programs are written with, by process.
    pub runtimes: HashMap<u32, ProgramRuntime>,
    /// The library whose `malloc` gave the objects' memory, by their places.
    pub mallocs: BTreeMap<u32, MallocLibrary>,
    /// To which memory the kernel gives huge pages.
    pub huge_page_setting: Option<Setting>,
    /// What cures need to know of the objects, by their places.
    pub cures: BTreeMap<u32, CureFacts>,
}

impl Explanation {
    /// Takes these nodes for the objects' pages: they are those of all pages, while samples see only a part.
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

    /// The objects with all that is known of them. Those with most time come first, and contended lines then name objects by
    /// their new places.
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
        let user = shares.computing
            + shares.cached
            + shares.local
            + shares.remote
            + shares.unknown
            + shares.contended;
        (user > 0.0).then(|| shares.kernel / (user + shares.kernel))
    }
}

/// The thread that allocated nearly all of an object whose pages are on that thread's node. On a machine of several nodes it
/// is likely to have touched the pages first, if no other thread had the addresses before.
fn touched_by_homes(used: &ObjectUse, object: &SampledObject) -> Option<ObjectTouch> {
    const NEARLY_ALL: f64 = 0.9;
    let by = object.blocks.most(NEARLY_ALL).filter(|_| object.blocks.handed_from().is_empty())?;
    used.remote?;
    let home = used.home.iter().find(|home| home.node == by.node && home.share >= NEARLY_ALL)?;
    let (known_by, chain) = (TouchEvidence::Homes, Vec::new());
    Some(ObjectTouch { thread: by.thread, node: Some(by.node), share: home.share, known_by, chain })
}

/// The name of an object, which begins with the function of Python that allocated it where looks agree on one.
fn named_by_script(object: &SampledObject, allocation: Option<&ScriptShares>) -> String {
    /// At least this number of looks, and this part of them.
    const LOOKS: u64 = 3;
    const NEARLY_ALL: f64 = 0.95;
    let first = allocation.filter(|looks| looks.looks >= LOOKS).and_then(|looks| looks.functions.first());
    match first.filter(|first| first.share >= NEARLY_ALL).and_then(|first| first.name.in_script()) {
        // What was told from others by that function has its name already.
        Some(function) if !object.name.starts_with(&format!("{function}, ")) => {
            format!("{function}, {}", object.name)
        }
        Some(_) => object.name.clone(),
        None => object.name.clone(),
    }
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
    let allocation = context.python[1].get(&used.object);
    ExplainedObject {
        object: SampledObject { name: named_by_script(object, allocation), ..object.clone() },
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
        members: context.members.get(&used.object).cloned(),
        python_use: context.python[0].get(&used.object).cloned().unwrap_or_default(),
        python_allocation: allocation.cloned().unwrap_or_default(),
        facts: ObjectFacts {
            used: used.clone(),
            walk: context.walks.get(&used.object).cloned(),
            sharing: line.map(|line| line.sharing),
            fields: line.map_or_else(Vec::new, fields::names),
            line_processes: line.map_or_else(Vec::new, |line| {
                line.processes.iter().filter_map(|place| context.pids.get(*place as usize).copied()).collect()
            }),
            of_cpu_time: explanation.of_cpu_time(used.time.outside()),
            kernel: explanation.kernel(),
            huge_pages: context.huge_pages.get(&used.object).copied(),
            bound: context.bound.get(&used.object).cloned(),
            runtime: context.runtimes.get(&object.pid).copied().unwrap_or_default(),
            malloc: context.mallocs.get(&used.object).copied(),
            huge_page_setting: context.huge_page_setting,
            cure: context.cures.get(&used.object).cloned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{BlockOrigins, ObjectKind};

    #[test]
    fn an_object_has_the_function_of_python_on_which_looks_agree() {
        let object = SampledObject {
            pid: 1,
            processes: vec![1],
            kind: ObjectKind::Allocated,
            pieces: 1,
            blocks: BlockOrigins::default(),
            size: 0,
            name: "malloc in f".to_owned(),
        };
        let name = CodeName {
            function: Some("build".to_owned()),
            module: "app.py".to_owned(),
            file: Some("/srv/app.py".to_owned()),
            line: Some(3),
        };
        let named = |looks, share| {
            let functions = vec![CodeShare { name: name.clone(), share }];
            named_by_script(&object, Some(&ScriptShares { looks, functions }))
        };
        assert_eq!(named(3, 0.96), "build (app.py:3), malloc in f");
        assert_eq!([named(2, 1.0), named(20, 0.9), named_by_script(&object, None)], ["malloc in f"; 3]);
    }
}
