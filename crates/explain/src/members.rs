//! Which members of a structure the time at an object belongs to, as `perf annotate-data` shows it: the type comes from debug
//! information, the member from the addresses of samples.

use crate::member_path::layout::{self, LayoutMember, VariableLayout};
use crate::member_path::pointee::{self, CallResult};
use crate::observation::Observation;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Objects whose members are looked for, those with most time first.
const MAX_OBJECTS: usize = 32;
/// Members that are kept.
const MAX_MEMBERS: usize = 16;

/// A member that samples accessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsedMember {
    /// Its name as it follows that of the object: `.x`, or `.start.x`.
    pub name: String,
    /// Bytes from the begin of an element of the object.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
    /// Its part of the time at the object, from 0 to 1.
    pub share: f64,
}

/// The members of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectMembers {
    /// The type of the object, such as `struct point[100]`.
    pub r#type: String,
    /// Bytes of an element; of the object, if it is no array.
    pub element: u64,
    /// The members, that with most time first.
    pub used: Vec<UsedMember>,
}

/// By what the type of memory is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TypeSource {
    /// A variable: the file that describes it, and its address there.
    Variable(PathBuf, u64),
    /// A block: its process, and the address behind the call that asked for it.
    Call(u32, u64),
}

/// Memory whose type may be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedMemory {
    /// Where the variable or block begins.
    pub start: u64,
    /// By what its type is known.
    pub source: TypeSource,
}

/// What is known of processes and their objects.
pub trait TypedObjects {
    /// The variable or block of an object, by its place in the list, that a process has at an address.
    fn memory(&mut self, process: u32, object: u32, address: u64) -> Option<TypedMemory>;
    /// The file with the code of a call of a process, and where the result of the call goes.
    fn call(&mut self, process: u32, after: u64) -> Option<(PathBuf, CallResult)>;
}

/// Where samples accessed an object.
#[derive(Debug)]
struct TypedUse {
    source: TypeSource,
    /// Time of samples by the offset in the variable or block.
    offsets: HashMap<u64, u64>,
}

/// The members of the objects by their places, of those objects whose type is known.
pub fn of(observations: &[Observation], known: &mut dyn TypedObjects) -> BTreeMap<u32, ObjectMembers> {
    let used = uses(observations, &largest(observations), known);
    let layouts = layouts(used.values().map(|used| &used.source), known);
    let members = |(object, used): (&u32, &TypedUse)| {
        let layout = layouts.get(&used.source)?;
        let mut members = shares(layout, &used.offsets);
        // How many elements a block has is not known from its type.
        let is_array = used.offsets.keys().any(|offset| *offset >= layout.element);
        if is_array && matches!(used.source, TypeSource::Call(..)) {
            members.r#type.push_str("[]");
        }
        Some((*object, members))
    };
    used.iter().filter_map(members).collect()
}

/// The layouts, each file being read once.
fn layouts<'a>(
    sources: impl Iterator<Item = &'a TypeSource>,
    known: &mut dyn TypedObjects,
) -> HashMap<TypeSource, VariableLayout> {
    let mut variables: BTreeMap<PathBuf, Vec<u64>> = BTreeMap::new();
    let mut calls: BTreeMap<(PathBuf, u32), Vec<CallResult>> = BTreeMap::new();
    for source in sources {
        match source {
            TypeSource::Variable(path, address) => variables.entry(path.clone()).or_default().push(*address),
            TypeSource::Call(process, after) => {
                if let Some((path, call)) = known.call(*process, *after) {
                    calls.entry((path, *process)).or_default().push(call);
                }
            }
        }
    }
    let mut all = HashMap::new();
    for (path, addresses) in variables {
        let found = layout::of_file(&path, &addresses).into_iter();
        all.extend(found.map(|(address, layout)| (TypeSource::Variable(path.clone(), address), layout)));
    }
    for ((path, process), calls) in calls {
        let found = pointee::of_file(&path, &calls).into_iter();
        all.extend(found.map(|(after, layout)| (TypeSource::Call(process, after), layout)));
    }
    all
}

/// The objects with most time.
fn largest(observations: &[Observation]) -> Vec<u32> {
    let mut times: HashMap<u32, u64> = HashMap::new();
    for (at, access) in observations.iter().filter_map(|at| Some((at, at.access()?))) {
        *times.entry(access.object).or_default() += at.weight;
    }
    let mut objects: Vec<(u64, u32)> = times.into_iter().map(|(object, time)| (time, object)).collect();
    objects.sort_unstable_by_key(|(time, object)| (Reverse(*time), *object));
    objects.into_iter().take(MAX_OBJECTS).map(|(_, object)| object).collect()
}

fn uses(
    observations: &[Observation],
    objects: &[u32],
    known: &mut dyn TypedObjects,
) -> BTreeMap<u32, TypedUse> {
    let mut used: BTreeMap<u32, TypedUse> = BTreeMap::new();
    for (at, access) in observations.iter().filter_map(|at| Some((at, at.access()?))) {
        if !objects.contains(&access.object) || access.line_of_object().is_none() {
            continue;
        }
        if let Some(TypedMemory { start, source }) = known.memory(at.process, access.object, access.address)
            && let Some(offset) = access.address.checked_sub(start)
        {
            let new = || TypedUse { source, offsets: HashMap::new() };
            *used.entry(access.object).or_insert_with(new).offsets.entry(offset).or_default() += at.weight;
        }
    }
    used
}

/// The parts of the time that are at each member.
fn shares(layout: &VariableLayout, offsets: &HashMap<u64, u64>) -> ObjectMembers {
    let mut times: HashMap<&str, (&LayoutMember, u64)> = HashMap::new();
    for (offset, time) in offsets {
        if let Some(member) = layout.member(*offset) {
            times.entry(&member.name).or_insert((member, 0)).1 += time;
        }
    }
    let all = offsets.values().sum::<u64>().max(1) as f64;
    let mut times: Vec<(&LayoutMember, u64)> = times.into_values().collect();
    times.sort_unstable_by_key(|(member, time)| (Reverse(*time), member.offset));
    times.truncate(MAX_MEMBERS);
    let used = |(LayoutMember { name, offset, size }, time): (&LayoutMember, u64)| UsedMember {
        name: name.clone(),
        offset: *offset,
        size: *size,
        share: time as f64 / all,
    };
    let used = times.into_iter().map(used).collect();
    ObjectMembers { r#type: layout.name.clone(), element: layout.element, used }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_belongs_to_the_member_that_has_the_byte_in_whichever_element() {
        let member = |name: &str, offset, size| LayoutMember { name: name.to_owned(), offset, size };
        let members = vec![member(".x", 0, 8), member(".next", 8, 8), member(".tag", 16, 1)];
        let layout = VariableLayout { name: "struct point[10]".to_owned(), element: 24, members };
        let found = shares(&layout, &HashMap::from([(0, 40), (24 * 7 + 4, 40), (24 * 9 + 8, 15), (23, 5)]));
        let used = |name: &str, offset, share| UsedMember { name: name.to_owned(), offset, size: 8, share };
        assert_eq!((found.r#type.as_str(), found.element), ("struct point[10]", 24));
        assert_eq!(found.used, [used(".x", 0, 0.8), used(".next", 8, 0.15)]);
    }
}
