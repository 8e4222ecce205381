//! The objects of all processes that samples accessed, in the order of their first samples.

use super::ObservedProcesses;
use crate::objects::{BlockOrigins, ObjectId, ObjectKind};
use crate::report::SampledObject;
use std::collections::HashMap;

/// An object that was accessed.
#[derive(Debug)]
struct ListedObject {
    process: u32,
    found: Option<ObjectId>,
    /// The object with its name; set when its process executes a different program, after which the name can no longer be
    /// found.
    named: Option<SampledObject>,
}

impl ListedObject {
    fn named(&self, processes: &mut dyn ObservedProcesses) -> SampledObject {
        if let Some(named) = &self.named {
            return named.clone();
        }
        let name = self.found.and_then(|found| processes.object_name(self.process, found));
        let row = self.found.and_then(|found| processes.row(self.process, found));
        SampledObject {
            pid: self.process,
            kind: row.map_or(ObjectKind::Gone, |row| row.origin.kind()),
            size: row.map_or(0, |row| row.max_bytes),
            pieces: row.map_or(0, |row| row.pieces),
            blocks: row.map_or_else(BlockOrigins::default, |row| row.blocks.clone()),
            name: name.unwrap_or_else(|| "no longer mapped".to_owned()),
        }
    }
}

/// The list. Addresses of a process that are not mapped any more are an object together.
#[derive(Debug, Default)]
pub struct ObjectList {
    places: HashMap<(u32, Option<ObjectId>), u32>,
    listed: Vec<ListedObject>,
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
    pub fn place(&mut self, process: u32, found: Option<ObjectId>) -> u32 {
        let Self { places, listed, count, is_anonymous } = self;
        *places.entry((process, found)).or_insert_with(|| {
            if !*is_anonymous {
                listed.push(ListedObject { process, found, named: None });
            }
            *count += 1;
            *count - 1
        })
    }

    /// The process and the object at a place; `None` if the process has executed a different program since.
    pub fn at(&self, place: u32) -> Option<(u32, ObjectId)> {
        let listed = self.listed.get(place as usize).filter(|listed| listed.named.is_none())?;
        Some((listed.process, listed.found?))
    }

    /// Names the objects of a process now, since it has ended or executes a different program: its objects are different
    /// ones from now on.
    pub fn forget(&mut self, process: u32, processes: &mut dyn ObservedProcesses) {
        self.places.retain(|(of, _), _| *of != process);
        for listed in self.listed.iter_mut().filter(|listed| listed.process == process) {
            listed.named = Some(listed.named(processes));
        }
    }

    /// All objects of the list, with their names.
    pub fn named(&self, processes: &mut dyn ObservedProcesses) -> Vec<SampledObject> {
        self.listed.iter().map(|listed| listed.named(processes)).collect()
    }
}
