//! Which members of a structure the time at an object belongs to, as `perf annotate-data` shows it: the type comes from debug
//! information, the member from the addresses of samples.

use crate::fields::AddressedObject;
use crate::member_path::layout::{self, LayoutMember, VariableLayout};
use crate::observation::Observation;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Objects whose members are looked for, those with most time first.
const MAX_OBJECTS: usize = 32;
/// Members that are kept.
const MAX_MEMBERS: usize = 16;

/// A member that samples accessed.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectMembers {
    /// The type of the object, such as `struct point[100]`.
    pub r#type: String,
    /// Bytes of an element; of the object, if it is no array.
    pub element: u64,
    /// The members, that with most time first.
    pub used: Vec<UsedMember>,
}

/// Where samples accessed a variable.
#[derive(Debug, Default)]
struct VariableUse {
    /// The file of the variable, and the variable's address there.
    variable: (PathBuf, u64),
    /// Time of samples by the offset in the variable.
    offsets: HashMap<u64, u64>,
}

/// The members of the objects by their places, of those objects whose type is known. `find` knows the object, by its place in
/// the list, that a process has at an address.
pub fn of(
    observations: &[Observation],
    find: &mut dyn FnMut(u32, u32, u64) -> Option<AddressedObject>,
) -> BTreeMap<u32, ObjectMembers> {
    let used = uses(observations, &largest(observations), find);
    let mut wanted: BTreeMap<&PathBuf, Vec<u64>> = BTreeMap::new();
    for VariableUse { variable: (path, address), .. } in used.values() {
        wanted.entry(path).or_default().push(*address);
    }
    let layouts: HashMap<&PathBuf, HashMap<u64, VariableLayout>> =
        wanted.into_iter().map(|(path, variables)| (path, layout::of_file(path, &variables))).collect();
    let members = |(object, used): (&u32, &VariableUse)| {
        let layout = layouts.get(&used.variable.0)?.get(&used.variable.1)?;
        Some((*object, shares(layout, &used.offsets)))
    };
    used.iter().filter_map(members).collect()
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
    find: &mut dyn FnMut(u32, u32, u64) -> Option<AddressedObject>,
) -> BTreeMap<u32, VariableUse> {
    // A variable is at one address of each process.
    let mut known: HashMap<(u32, u32), Option<AddressedObject>> = HashMap::new();
    let mut used: BTreeMap<u32, VariableUse> = BTreeMap::new();
    for (at, access) in observations.iter().filter_map(|at| Some((at, at.access()?))) {
        if !objects.contains(&access.object) || access.line_of_object().is_none() {
            continue;
        }
        let found = known
            .entry((at.process, access.object))
            .or_insert_with(|| find(at.process, access.object, access.address));
        let variable = found.as_ref().and_then(|found| Some((found.start, found.variable.as_ref()?)));
        if let Some((start, variable)) = variable
            && let Some(offset) = access.address.checked_sub(start)
        {
            let used = used
                .entry(access.object)
                .or_insert_with(|| VariableUse { variable: variable.clone(), offsets: HashMap::new() });
            *used.offsets.entry(offset).or_default() += at.weight;
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
