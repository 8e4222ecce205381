//! The values of a cure, which are the content of its file.

use serde::{Deserialize, Serialize};

/// What cures a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cure {
    /// The version of the form: 1.
    #[serde(rename = "cure")]
    pub version: u32,
    /// The command line that was observed.
    pub command: String,
    /// The program's own file.
    pub program: ProgramFile,
    /// Its threads.
    pub threads: CuredThreads,
    /// Switches of the program's runtime, as variables of the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<SetVariable>,
    /// Threads that use the same data, if another order than that of their creation brings them together: each shares a node with those
    /// that it shares most with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sharing: Vec<SharingThreads>,
    /// The objects that get a policy.
    #[serde(deserialize_with = "crate::parse::objects")]
    #[cfg_attr(test, schemars(with = "Vec<CuredObject>"))]
    pub objects: Vec<CuredObject>,
    /// Objects with a verdict that get none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftObject>,
}

impl Cure {
    /// The version of the form that this program writes.
    pub const VERSION: u32 = 1;
}

/// A program or library.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProgramFile {
    /// The last part of its path, for people.
    pub file: String,
    /// Its build ID in hexadecimal digits: another build has other addresses. Empty if the file has none.
    pub build_id: String,
}

/// The threads of the observed program. They are numbered in their order of creation in their process; the first thread has
/// the number 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CuredThreads {
    /// The numbers of those that worked, in ascending order.
    pub working: Vec<u32>,
    /// How many threads the process has created, with the first one.
    pub count: u32,
    /// The CPUs that the program might use. A program with as many working threads asks the system for their number.
    pub cpus: u32,
    /// Whether OpenMP makes them: OMP_NUM_THREADS then says how many.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_mp: bool,
}

/// Two threads that use the same data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SharingThreads {
    /// Their numbers, the lower one first.
    pub threads: [u32; 2],
    /// The part of all uses of data that follow a use of the same place by the other one of the two, from 0 to 1.
    pub share: f64,
}

/// A variable of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetVariable {
    /// Its name.
    pub name: String,
    /// Its value, which is added to what the user has set.
    pub value: String,
    /// Why.
    pub reason: String,
}

/// An object that gets a policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CuredObject {
    /// Its name, as `numa explain` prints it.
    pub name: String,
    /// The rule that found what is wrong with it; `-` if it is cured beside others, with the same threads and too little time for a
    /// finding.
    pub verdict: String,
    /// What is wrong with it, in a sentence.
    pub reason: String,
    /// How it is found again.
    #[serde(flatten)]
    pub identity: CuredIdentity,
    /// What it gets.
    pub policy: ObjectPolicy,
    /// The size of its pages.
    #[serde(default, skip_serializing_if = "PageSize::is_as_it_is")]
    pub pages: PageSize,
}

/// How an object is found in another process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CuredIdentity {
    /// A variable of the program or of a library.
    Variable {
        /// The file that has it.
        module: ProgramFile,
        /// Its address in the terms of the file, in hexadecimal digits in the text.
        #[serde(with = "hexadecimal")]
        #[cfg_attr(test, schemars(with = "String"))]
        address: u64,
        /// Its size.
        bytes: u64,
    },
    /// The blocks that one piece of code allocates or maps.
    Blocks {
        /// The function: `malloc`, `mmap` and so on.
        by: String,
        /// The return addresses that tell these blocks from others, from the direct caller of the function on outwards; at most
        /// eight.
        chain: Vec<ReturnAddress>,
        /// How many there were.
        count: u64,
        /// The size of the smallest one.
        smallest: u64,
        /// The size of the largest one.
        largest: u64,
    },
}

impl CuredIdentity {
    /// Return addresses of a chain, at most.
    pub const MAX_CHAIN: usize = 8;
}

/// The address behind a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReturnAddress {
    /// The file that has the call.
    pub module: ProgramFile,
    /// The address in the terms of the file.
    #[serde(with = "hexadecimal")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub address: u64,
    /// The function, and the line if it is known, for people.
    pub name: String,
}

/// What an object gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ObjectPolicy {
    /// Each part is on the node of its thread.
    Parts {
        /// What is divided.
        over: PartsOver,
        /// The parts, in ascending order. What is between them goes to the node that touches it first.
        parts: Vec<ObjectPart>,
    },
    /// Its pages are on all nodes of the program in turn: the load spreads, and nothing gets near.
    Interleave,
    /// The same by the kernel's weights, where it has them.
    Weighted,
    /// Blocks come from memory of the node that allocates them, and return to it.
    Near,
    /// Blocks keep two cache lines of distance.
    Padded,
    /// Only the size of its pages changes.
    Unchanged,
}

/// What the parts of an object are parts of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PartsOver {
    /// Each of its blocks, or the variable.
    Block,
    /// Its blocks in the order of their allocation: each block is in one part.
    Blocks,
}

/// A part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ObjectPart {
    /// Where it begins, in 64ths of the whole.
    pub from: u32,
    /// Where it ends, behind its last fraction.
    pub to: u32,
    /// The number of the thread that uses it.
    pub thread: u32,
    /// Samples in it.
    pub samples: u64,
    /// The part of these samples that are the thread's, from 0 to 1.
    pub sure: f64,
}

/// The size of an object's pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PageSize {
    /// As the program and the machine have it.
    #[default]
    AsItIs,
    /// Huge pages.
    Huge,
    /// Small pages, whatever the program asks for.
    Small,
}

impl PageSize {
    fn is_as_it_is(&self) -> bool {
        *self == Self::AsItIs
    }
}

/// An object with a verdict that gets no policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftObject {
    /// Its name.
    pub name: String,
    /// The rule that found what is wrong with it.
    pub verdict: String,
    /// Why it gets none, in a sentence.
    pub why: String,
}

/// Numbers as text such as `0x4040`.
mod hexadecimal {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{value:#x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16)
            .map_err(|_| D::Error::custom(format!("'{text}' is no address such as 0x4040")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The schema is a page of the guide: `UPDATE=1` writes it anew.
    #[test]
    fn the_schema_in_the_guide_is_that_of_the_values() {
        let schema = schemars::schema_for!(Cure);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/cure.schema.json");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "UPDATE=1 writes it anew");
    }
}
