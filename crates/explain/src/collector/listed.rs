//! The objects of all processes that samples accessed, in the order of their first samples. What several processes use is one
//! object.

use super::ObservedProcesses;
use crate::identity::ObjectIdentity;
use crate::objects::{BlockOrigins, ObjectId, ObjectKind};
use crate::report::SampledObject;
use std::collections::{HashMap, HashSet};

/// An object as one process has it.
#[derive(Debug)]
struct ObjectOfProcess {
    process: u32,
    found: Option<ObjectId>,
    /// The object with its name; set when its process executes a different program, after which the name can no longer be
    /// found.
    named: Option<SampledObject>,
}

impl ObjectOfProcess {
    /// The object with its name.
    fn named(&self, processes: &mut dyn ObservedProcesses) -> SampledObject {
        if let Some(named) = &self.named {
            return named.clone();
        }
        let name = self.found.and_then(|found| processes.object_name(self.process, found));
        let name = name.unwrap_or_else(|| "no longer mapped".to_owned());
        SampledObject { name, ..self.without_name(processes) }
    }

    /// The object; it may have no name, which takes long to find.
    fn without_name(&self, processes: &dyn ObservedProcesses) -> SampledObject {
        if let Some(named) = &self.named {
            return named.clone();
        }
        let row = self.found.and_then(|found| processes.row(self.process, found));
        SampledObject {
            pid: self.process,
            processes: vec![self.process],
            kind: row.map_or(ObjectKind::Gone, |row| row.origin.kind()),
            size: row.map_or(0, |row| row.max_bytes),
            pieces: row.map_or(0, |row| row.pieces),
            blocks: row.map_or_else(BlockOrigins::default, |row| row.blocks.clone()),
            name: String::new(),
        }
    }
}

/// An object with those of the other processes that are the same one; it is there once if they share its memory. A process
/// has one several times if it executes its program again, or if the news that it does come late: it counts once.
fn together(
    first: SampledObject,
    others: &[ObjectOfProcess],
    is_shared: bool,
    processes: &dyn ObservedProcesses,
) -> SampledObject {
    let mut each = vec![(first.size, first.pieces)];
    let mut all = first;
    for other in others.iter().map(|other| other.without_name(processes)) {
        match all.processes.iter().position(|process| *process == other.pid) {
            Some(at) => each[at] = (each[at].0.max(other.size), each[at].1.max(other.pieces)),
            None => {
                all.processes.push(other.pid);
                each.push((other.size, other.pieces));
            }
        }
        all.blocks.add_all(&other.blocks);
    }
    let is_there_once = is_shared || matches!(all.kind, ObjectKind::File | ObjectKind::SharedMemory);
    let sizes = each.iter().map(|(size, _)| *size);
    all.size = match is_there_once {
        true => sizes.max().unwrap_or_default(),
        false => sizes.fold(0, u64::saturating_add),
    };
    all.pieces = each.iter().map(|(_, pieces)| *pieces).fold(0, u64::saturating_add);
    all
}

/// The list. Addresses of a process that are not mapped any more are an object together.
#[derive(Debug, Default)]
pub struct ObjectList {
    places: HashMap<(u32, Option<ObjectId>), u32>,
    by_identity: HashMap<ObjectIdentity, u32>,
    /// The object at each place, of each of its processes.
    listed: Vec<Vec<ObjectOfProcess>>,
    /// The places of memory that processes share.
    shared: HashSet<u32>,
    count: u32,
    /// Whether the list keeps only places and no names, which is all that series need.
    is_anonymous: bool,
}

impl ObjectList {
    /// Gives places, and keeps no names.
    pub fn anonymous() -> Self {
        Self { is_anonymous: true, ..Self::default() }
    }

    /// The place of an object in the list.
    pub fn place(
        &mut self,
        process: u32,
        found: Option<ObjectId>,
        processes: &mut dyn ObservedProcesses,
    ) -> u32 {
        if let Some(place) = self.places.get(&(process, found)) {
            return *place;
        }
        let new = self.count;
        let place = if self.is_anonymous {
            new
        } else {
            let identity = found.and_then(|found| processes.identity(process, found));
            let place = identity.map_or(new, |identity| *self.by_identity.entry(identity).or_insert(new));
            if place == new {
                self.listed.push(Vec::new());
            }
            if let Some(listed) = self.listed.get_mut(place as usize) {
                listed.push(ObjectOfProcess { process, found, named: None });
            }
            place
        };
        self.count += u32::from(place == new);
        self.places.insert((process, found), place);
        place
    }

    /// Notes that the memory of the object at a place is shared by its processes.
    pub fn share(&mut self, place: u32) {
        self.shared.insert(place);
    }

    /// The processes and their objects at a place, without processes that have executed a different program since.
    pub fn at(&self, place: u32) -> impl Iterator<Item = (u32, ObjectId)> {
        let listed = self.listed.get(place as usize).into_iter().flatten();
        listed.filter(|of| of.named.is_none()).filter_map(|of| Some((of.process, of.found?)))
    }

    /// Names the objects of a process now, since it has ended or executes a different program: its objects are different
    /// ones from now on.
    pub fn forget(&mut self, process: u32, processes: &mut dyn ObservedProcesses) {
        self.places.retain(|(of, _), _| *of != process);
        for of in self.listed.iter_mut().flatten().filter(|of| of.process == process) {
            of.named = Some(of.named(processes));
        }
    }

    /// All objects of the list, with their names.
    pub fn named(&self, processes: &mut dyn ObservedProcesses) -> Vec<SampledObject> {
        let one = |(place, of): (u32, &Vec<ObjectOfProcess>)| {
            let (first, others) = of.split_first()?;
            let first = first.named(processes);
            Some(together(first, others, self.shared.contains(&place), processes))
        };
        (0..).zip(&self.listed).filter_map(one).collect()
    }

    /// The sizes in bytes of the objects that have one, by their places. No name is looked up.
    pub fn sizes(&self, processes: &dyn ObservedProcesses) -> HashMap<u32, u64> {
        let size = |(place, of): (u32, &Vec<ObjectOfProcess>)| {
            let (first, others) = of.split_first()?;
            let first = first.without_name(processes);
            let size = together(first, others, self.shared.contains(&place), processes).size;
            (size > 0).then_some((place, size))
        };
        (0..).zip(&self.listed).filter_map(size).collect()
    }
}
