//! The table by which `libnumaapply.so` knows what each object of a program gets, and in which it counts what it did: a memory
//! file without a name. The program may overwrite it: no content makes the reader panic, loop or allocate without a limit.

mod layout;

pub use layout::{
    BUILD_ID_BYTES as MAX_BUILD_ID, COUNTED_NODES, FRACTIONS as TABLE_FRACTIONS, MODULES as MAX_MODULES,
    OBJECTS as MAX_TABLE_OBJECTS,
};

use crate::shared_file::{SharedFile, Taken};
use layout::{CHAIN, FRACTIONS, MODULE_WORDS, NO_NODE, OBJECT_WORDS, header, module, object};
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// Names the table to the library.
pub const APPLY: &str = "NUMA_APPLY";

/// What an object gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TablePolicy {
    /// Each fraction is on a node of its own.
    Parts = 1,
    /// Pages are on all nodes in turn.
    Interleaved,
    /// The same by the kernel's weights.
    Weighted,
    /// Blocks are of the node that allocates them.
    Near,
    /// Blocks keep their distance.
    Padded,
    /// Only the pages' size changes.
    Unchanged,
}

/// The size of an object's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TablePages {
    /// As they are.
    AsTheyAre,
    /// Huge pages.
    Huge,
    /// Small pages.
    Small,
}

/// How an object is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableIdentity {
    /// A variable.
    Variable {
        /// The place of its module.
        module: u32,
        /// Its address in the terms of the file.
        address: u64,
        /// Its size.
        bytes: u64,
    },
    /// Blocks.
    Blocks {
        /// The smallest and the largest size.
        sizes: [u64; 2],
        /// How many there were.
        count: u64,
        /// Return addresses, each with the place of its module; that of the direct caller comes first.
        chain: Vec<(u32, u64)>,
    },
}

/// An object of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableObject {
    /// How it is found.
    pub identity: TableIdentity,
    /// What it gets.
    pub policy: TablePolicy,
    /// The size of its pages.
    pub pages: TablePages,
    /// Whether parts are those of all blocks in order, and not of each block.
    pub over_blocks: bool,
    /// The node of each fraction.
    pub node: [Option<u32>; FRACTIONS],
}

/// The content of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableContent {
    /// The nodes of the run, each with one of its CPUs.
    pub nodes: Vec<(u32, u32)>,
    /// The build IDs of modules, at most [`MAX_MODULES`] of at most [`MAX_BUILD_ID`] bytes.
    pub modules: Vec<Vec<u8>>,
    /// The objects, at most [`MAX_TABLE_OBJECTS`].
    pub objects: Vec<TableObject>,
    /// The library says at once what it does.
    pub verbose: bool,
}

/// What was done for an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectOutcome {
    /// Variables or blocks that have the policy.
    pub applied: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those for which the kernel refused it, and the last of its errors.
    pub refused: u64,
    /// An error number.
    pub error: i32,
    /// Blocks of its code that are of another size.
    pub other_size: u64,
    /// Those whose memory was touched from its nodes, since policies are refused.
    pub touched: u64,
    /// Pages by node, as far as they were seen; the last number is that of all nodes from there on.
    pub pages_on: Vec<u64>,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyOutcome {
    /// Processes that the library was loaded into.
    pub processes: u64,
    /// Processes in which it did nothing.
    pub stepped_aside: u64,
    /// Whether memory policies are refused here.
    pub policies_refused: bool,
    /// Blocks that got nothing, since the process had nearly as many mappings as it may have.
    pub mappings_exhausted: u64,
    /// Calls for policies of the program's own that were left out.
    pub overridden: u64,
    /// Processes that have set a filter of system calls: from then on they got nothing.
    pub filtered: u64,
    /// Calls of `dlopen` in which RTLD_DEEPBIND was left out.
    pub deep_bindings: u64,
    /// Whether each module was loaded.
    pub loaded: Vec<bool>,
    /// By object.
    pub objects: Vec<ObjectOutcome>,
}

/// The table, for its owner.
#[derive(Debug)]
pub struct ApplyTable {
    words: SharedFile,
    counts: [usize; 2],
}

impl ApplyTable {
    /// A table with this content, of which what exceeds the limits is an error of the kind `InvalidInput`.
    pub fn create(content: &TableContent) -> io::Result<Self> {
        content.check()?;
        let words = SharedFile::create(layout::WORDS, Taken::Now)?;
        let counts = [content.objects.len(), content.modules.len()];
        let highest = content.nodes.iter().map(|(node, _)| u64::from(*node) + 1).max().unwrap_or(0);
        words.set([
            (header::MAGIC, layout::MAGIC),
            (header::VERSION, layout::VERSION),
            (header::TOKEN, words.token()),
            (header::OBJECTS, counts[0] as u64),
            (header::MODULES, counts[1] as u64),
            (header::NODES, highest),
            (header::VERBOSE, u64::from(content.verbose)),
        ]);
        let node = |(node, cpu): &(u32, u32)| (layout::NODES_AT + *node as usize, u64::from(*cpu) | 1 << 32);
        words.set(content.nodes.iter().map(node));
        for (place, id) in content.modules.iter().enumerate() {
            let at = layout::MODULES_AT + place * MODULE_WORDS;
            words.set([(at + module::ID_BYTES, id.len() as u64)]);
            words.set(id.chunks(8).enumerate().map(|(word, bytes)| (at + module::ID + word, word_of(bytes))));
        }
        for (place, one) in content.objects.iter().enumerate() {
            let at = layout::OBJECTS_AT + place * OBJECT_WORDS;
            words.set(one.words().into_iter().map(|(word, value)| (at + word, value)));
        }
        Ok(Self { words, counts })
    }

    /// The variable that a program needs beside the preloaded library.
    pub fn environment(&self) -> (&'static str, String) {
        (APPLY, self.words.name())
    }

    /// What was done so far.
    pub fn outcome(&self) -> ApplyOutcome {
        let word = |at: usize| self.words[at].load(Relaxed);
        let [objects, modules] = self.counts;
        let one = |place: usize| {
            let at = layout::OBJECTS_AT + place * OBJECT_WORDS;
            ObjectOutcome {
                applied: word(at + object::APPLIED),
                bytes: word(at + object::APPLIED_BYTES),
                refused: word(at + object::REFUSED),
                error: i32::try_from(word(at + object::ERROR)).unwrap_or(0),
                other_size: word(at + object::OTHER_SIZE),
                touched: word(at + object::TOUCHED),
                pages_on: (0..COUNTED_NODES).map(|node| word(at + object::PAGES_ON + node)).collect(),
            }
        };
        let is_loaded = |place| word(layout::MODULES_AT + place * MODULE_WORDS + module::STATE) != 0;
        ApplyOutcome {
            processes: word(header::PROCESSES),
            stepped_aside: word(header::STEPPED_ASIDE),
            policies_refused: word(header::POLICIES_REFUSED) != 0,
            mappings_exhausted: word(header::MAPPINGS_EXHAUSTED),
            overridden: word(header::OVERRIDDEN),
            filtered: word(header::FILTERED),
            deep_bindings: word(header::DEEP_BINDINGS),
            loaded: (0..modules).map(is_loaded).collect(),
            objects: (0..objects).map(one).collect(),
        }
    }

    /// Overwrites a word of the table, as a program may do that has mapped it: for tests.
    pub fn overwrite(&self, word: usize, value: u64) {
        self.words[word].store(value, Relaxed);
    }
}

impl TableContent {
    fn check(&self) -> io::Result<()> {
        let too_many = |what: &str, count: usize, most: usize| {
            let why = format!("{count} {what}, of which a table can have {most}");
            (count > most).then(|| io::Error::new(io::ErrorKind::InvalidInput, why))
        };
        let longest = self.modules.iter().map(Vec::len).max().unwrap_or(0);
        let chains = self.objects.iter().map(|one| match &one.identity {
            TableIdentity::Blocks { chain, .. } => chain.len(),
            TableIdentity::Variable { .. } => 0,
        });
        let highest = self.nodes.iter().map(|(node, _)| *node as usize + 1).max().unwrap_or(0);
        let excess = [
            too_many("objects", self.objects.len(), layout::OBJECTS),
            too_many("modules", self.modules.len(), layout::MODULES),
            too_many("bytes of a build ID", longest, layout::BUILD_ID_BYTES),
            too_many("addresses of a chain", chains.max().unwrap_or(0), CHAIN),
            too_many("nodes", highest, layout::NODES),
        ];
        excess.into_iter().flatten().next().map_or(Ok(()), Err)
    }
}

impl TableObject {
    /// The words that say what it is, by their places in the object.
    fn words(&self) -> Vec<(usize, u64)> {
        let mut words = Vec::new();
        let (kind, module) = match &self.identity {
            TableIdentity::Variable { module, address, bytes } => {
                words.extend([(object::ADDRESS, *address), (object::BYTES, *bytes)]);
                (1, *module)
            }
            TableIdentity::Blocks { sizes: [smallest, largest], count, chain } => {
                words.extend([
                    (object::SMALLEST, *smallest),
                    (object::LARGEST, *largest),
                    (object::COUNT, *count),
                ]);
                words.push((object::CHAIN_COUNT, chain.len() as u64));
                for (place, (module, address)) in chain.iter().enumerate() {
                    words.extend([
                        (object::CHAIN + place, *address),
                        (object::CHAIN_MODULE + place, u64::from(*module)),
                    ]);
                }
                (2, 0)
            }
        };
        let bytes = [kind, self.policy as u64, self.pages as u64, u64::from(self.over_blocks)];
        let head = bytes.iter().rev().fold(0, |word, byte| word << 8 | byte);
        words.push((object::KIND, head | u64::from(module) << 32));
        let number = |node: &Option<u32>| node.and_then(|node| u16::try_from(node).ok()).unwrap_or(NO_NODE);
        for (word, nodes) in self.node.chunks(4).enumerate() {
            let bytes: Vec<u8> = nodes.iter().flat_map(|node| number(node).to_le_bytes()).collect();
            words.push((object::NODE + word, word_of(&bytes)));
        }
        words
    }
}

/// At most eight bytes as a word in memory.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> TableContent {
        let object = TableObject {
            identity: TableIdentity::Blocks {
                sizes: [4096, 8192],
                count: 3,
                chain: vec![(1, 0x1234), (0, 0x55)],
            },
            policy: TablePolicy::Parts,
            pages: TablePages::Small,
            over_blocks: true,
            node: std::array::from_fn(|at| (at > 0).then_some(at as u32 / 16)),
        };
        let variable = TableIdentity::Variable { module: 1, address: 0x4040, bytes: 64 };
        let objects = vec![object.clone(), TableObject { identity: variable, ..object }];
        TableContent {
            nodes: vec![(0, 3), (2, 9)],
            modules: vec![vec![1; 20], vec![2; 9]],
            objects,
            verbose: true,
        }
    }

    #[test]
    fn the_table_has_the_library_s_layout() {
        let table = ApplyTable::create(&content()).unwrap();
        let word = |at: usize| table.words[at].load(Relaxed);
        assert_eq!(layout::WORDS * 8, (64 + 1024 + 64 * 8 + 256 * 128) * 8);
        assert_eq!([word(header::OBJECTS), word(header::MODULES), word(header::NODES)], [2, 2, 3]);
        assert_eq!(word(layout::NODES_AT + 2), 9 | 1 << 32);
        assert_eq!(word(layout::MODULES_AT + 8), 9);
        assert_eq!(word(layout::MODULES_AT + 8 + 2), 2);
        let object = |place: usize, at: usize| word(layout::OBJECTS_AT + place * OBJECT_WORDS + at);
        assert_eq!(object(0, object::KIND), 0x0102_0102);
        assert_eq!(object(1, object::KIND), 1 << 32 | 0x0102_0101);
        assert_eq!([object(0, object::CHAIN), object(0, object::CHAIN_MODULE)], [0x1234, 1]);
        assert_eq!([object(0, object::NODE), object(0, object::NODE + 15)], [0xffff, 0x0003_0003_0003_0003]);
        assert_eq!(table.outcome().loaded, [false, false]);
        assert_eq!(table.environment().0, "NUMA_APPLY");
    }

    #[test]
    fn what_a_table_cannot_have_is_an_error() {
        let refused = |change: &dyn Fn(&mut TableContent)| {
            let mut content = content();
            change(&mut content);
            ApplyTable::create(&content).unwrap_err().to_string()
        };
        let many = |content: &mut TableContent| content.objects = vec![content.objects[0].clone(); 257];
        assert_eq!(refused(&many), "257 objects, of which a table can have 256");
        assert!(refused(&|content| content.modules[0] = vec![0; 41]).starts_with("41 bytes of a build ID"));
        assert!(refused(&|content| content.nodes.push((1024, 0))).starts_with("1025 nodes"));
    }

    #[test]
    fn a_program_may_overwrite_the_table() {
        let table = ApplyTable::create(&content()).unwrap();
        (0..layout::WORDS).for_each(|word| table.overwrite(word, u64::MAX));
        let outcome = table.outcome();
        assert_eq!((outcome.objects.len(), outcome.loaded), (2, vec![true, true]));
        assert_eq!(outcome.objects[1].error, 0);
    }
}
