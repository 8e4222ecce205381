//! Names of locks: the objects that have their addresses, with members where these are described.

use crate::collector::ObservedProcesses;
use crate::member_path::{self, VariableByte};
use crate::objects::ObjectId;
use crate::processes::Processes;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Locks whose members are looked for: those for which threads waited longest.
const MAX_MEMBERS: usize = 32;

/// A lock, or another place at which threads wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockAddress {
    /// The process.
    pub process: u32,
    /// The address.
    pub address: u64,
    /// The object that has it.
    pub object: ObjectId,
}

/// A process and an address.
type Place = (u32, u64);

/// What a lock is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockName {
    /// The name of its object.
    pub name: String,
    /// Whether that only says in which memory it is, such as a heap.
    pub is_vague: bool,
}

/// The names by process and address. Members are looked for if `with_members`, which reads debug information; locks come in the
/// order of the time that threads waited for them.
pub fn names(
    locks: &[LockAddress],
    processes: &mut Processes,
    with_members: bool,
) -> HashMap<Place, LockName> {
    let mut names = HashMap::new();
    let mut wanted: BTreeMap<PathBuf, Vec<(Place, VariableByte)>> = BTreeMap::new();
    for (place, &LockAddress { process, address, object }) in locks.iter().enumerate() {
        let found = processes.addressed(process, object, address);
        let variable =
            found.as_ref().and_then(|found| found.variable.clone().zip(address.checked_sub(found.start)));
        if let (Some(((path, variable), offset)), true) = (variable, with_members && place < MAX_MEMBERS) {
            let byte = VariableByte { variable, offset };
            wanted.entry(path).or_default().push(((process, address), byte));
        }
        let name = found.map(|found| found.name).or_else(|| processes.object_name(process, object));
        let is_vague = processes.is_unnamed(process, object);
        names.extend(name.map(|name| ((process, address), LockName { name, is_vague })));
    }
    for (path, bytes) in wanted {
        let all: Vec<VariableByte> = bytes.iter().map(|(_, byte)| *byte).collect();
        let members = member_path::of_file(&path, &all);
        for (lock, byte) in bytes {
            if let (Some(known), Some(member)) = (names.get_mut(&lock), members.get(&byte)) {
                known.name.push_str(shown(member));
            }
        }
    }
    names
}

/// A member without what is inside of a lock: names of the C library begin with underscores.
fn shown(member: &str) -> &str {
    member.split_once(".__").map_or(member, |(shown, _)| shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inside_of_a_lock_has_no_name() {
        for (member, expected) in [
            (".lock.__data.__lock", ".lock"),
            (".__data.__lock", ""),
            (".queue.head", ".queue.head"),
            ("", ""),
        ] {
            assert_eq!(shown(member), expected);
        }
    }
}
