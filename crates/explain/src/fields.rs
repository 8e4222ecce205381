//! Names for what threads use of a contended line: the field of a variable, or the bytes of an allocated block. What a
//! block contains is not known from its address, and nothing is guessed.

use crate::contended::{ContendedLine, LineUser};
use crate::member_path::{self, VariableByte};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Contended lines whose fields are named, those with most time first.
const MAX_LINES: usize = 64;

/// What a thread uses of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedField {
    /// Bytes from the begin of the line.
    pub at: u64,
    /// Bytes from the begin of the object.
    pub offset: u64,
    /// Its name: `counters[3].hits`, or `bytes 8-15 of counters` where the type is not known.
    pub name: String,
}

/// An object that has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressedObject {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub start: u64,
    /// For a variable, the file that describes it and its address there.
    pub variable: Option<(PathBuf, u64)>,
}

/// Names the fields of all users of the lines. `find` knows the object, by its place in the
/// list, that the process of a user has at an address.
pub fn name(
    lines: &mut [ContendedLine],
    find: &mut dyn FnMut(&LineUser, u32, u64) -> Option<AddressedObject>,
) {
    let mut wanted: BTreeMap<PathBuf, Vec<VariableByte>> = BTreeMap::new();
    let mut used = Vec::new();
    for (number, line) in lines.iter().take(MAX_LINES).enumerate() {
        for (user, (at, access)) in
            line.users.iter().enumerate().flat_map(|(n, u)| u.parts().map(move |p| (n, p)))
        {
            let using = &line.users[user];
            let address = using.address + at;
            let Some(object) = find(using, access.object, address) else { continue };
            let Some(offset) = address.checked_sub(object.start) else { continue };
            let byte = object.variable.as_ref().map(|(path, variable)| {
                let byte = VariableByte { variable: *variable, offset };
                let bytes = wanted.entry(path.clone()).or_default();
                if !bytes.contains(&byte) {
                    bytes.push(byte);
                }
                (path.clone(), byte)
            });
            used.push((number, user, at, offset, access.size, object.name, byte));
        }
    }
    let members: HashMap<PathBuf, HashMap<VariableByte, String>> =
        wanted.into_iter().map(|(path, bytes)| (path.clone(), member_path::of_file(&path, &bytes))).collect();
    for (line, user, at, offset, size, object, byte) in used {
        let member = byte.and_then(|(path, byte)| members.get(&path)?.get(&byte));
        let name = match member {
            Some(member) => format!("{object}{member}"),
            None => bytes_of(offset, size, &object),
        };
        lines[line].users[user].fields.push(UsedField { at, offset, name });
    }
}

fn bytes_of(offset: u64, size: u64, object: &str) -> String {
    match size {
        0 | 1 => format!("byte {offset} of {object}"),
        size => format!("bytes {offset}-{} of {object}", offset + size - 1),
    }
}

/// The different names of the fields of a line, that of the first user first.
pub fn names(line: &ContendedLine) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for field in line.users.iter().flat_map(|user| &user.fields) {
        if !names.contains(&field.name) {
            names.push(field.name.clone());
        }
    }
    names
}
