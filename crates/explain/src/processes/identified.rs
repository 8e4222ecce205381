//! How other processes find the objects and programs of the observed ones.

use super::Processes;
use crate::code::CodeNames;
use crate::collector::ObservedProcesses;
use crate::cure_facts::Unidentified;
use crate::module_files::ModuleFile;
use crate::objects::{ObjectBlock, ObjectId, ObjectOrigin};
use crate::process_objects::BlocksOfCalls;
use numakit_cure::{CuredIdentity, ProgramFile, ReturnAddress};
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, sched};
use std::collections::{HashMap, HashSet};

/// Chains of calls that allocate one object.
const MAX_CHAINS: usize = 8;

/// The program of a process, as it was when it was seen first.
#[derive(Debug, Clone, Default)]
pub struct SeenProgram {
    /// Its file; `None` if it cannot be read.
    pub file: Option<ProgramFile>,
    /// The CPUs on which it might run.
    pub cpus: u32,
    /// Whether it is a launcher of this project, which waits for the program that it started.
    pub is_launcher: bool,
}

/// Whether the file of this name is a program of this project that starts others.
pub fn is_own(name: &str) -> bool {
    ["numa", "numaplace"].contains(&name)
}

/// Whether the program of this name is a launcher if it was started with these words.
fn is_launcher(name: &str, words: &[u8]) -> bool {
    is_own(name) && (name == "numaplace" || words.split(|byte| *byte == 0).nth(1) == Some(b"run"))
}

impl SeenProgram {
    /// The program of a process that runs.
    pub(super) fn of(pid: u32) -> Self {
        let root = SysRoot::host();
        let (name, read) = ModuleFile::of_process(&root, pid);
        let words = TaskDir::of(&root, pid).bytes("cmdline");
        let is_launcher = words.is_ok_and(|words| is_launcher(&name, &words));
        let file = read.map(|read| read.file);
        let cpus = sched::affinity_of(pid).map(|cpus| cpus.len()).unwrap_or(0);
        Self { file, cpus: u32::try_from(cpus).unwrap_or(u32::MAX), is_launcher }
    }
}

impl Processes {
    /// The program of a process, if it was seen.
    pub fn seen_program(&self, pid: u32) -> Option<&SeenProgram> {
        self.seen.get(&pid)
    }

    /// Whether a process only waits for the program that it started: a launcher of this project.
    pub fn is_launcher(&mut self, pid: u32) -> bool {
        self.process(pid);
        self.seen.get(&pid).is_some_and(|program| program.is_launcher)
    }

    /// How another process finds an object.
    pub fn identities(&mut self, pid: u32, object: ObjectId) -> Result<Vec<CuredIdentity>, Unidentified> {
        let objects = self.objects.get(&pid).ok_or(Unidentified::Unnamed)?;
        let row = objects.row(object).ok_or(Unidentified::Unnamed)?;
        match &row.origin {
            ObjectOrigin::Variable { module, .. } => {
                let (_, address) = objects.variable_in_file(object).ok_or(Unidentified::NoFile)?;
                let module =
                    objects.file(module).and_then(|id| self.files.get(id)).ok_or(Unidentified::NoFile)?;
                let (module, bytes) = (with_id(&module.file)?, row.max_bytes);
                Ok(vec![CuredIdentity::Variable { module, address, bytes }])
            }
            ObjectOrigin::Allocated { .. } | ObjectOrigin::SmallBlocks { .. } => {
                let calls = objects.calls(object);
                match calls.len() {
                    0 => Err(Unidentified::NoFile),
                    more if more > MAX_CHAINS => Err(Unidentified::ManyCalls),
                    _ => calls.into_iter().map(|blocks| self.blocks_identity(pid, blocks)).collect(),
                }
            }
            _ => Err(Unidentified::Unnamed),
        }
    }

    fn blocks_identity(&mut self, pid: u32, blocks: BlocksOfCalls) -> Result<CuredIdentity, Unidentified> {
        if !blocks.is_told {
            return Err(Unidentified::Ambiguous);
        }
        let BlocksOfCalls { by, chain, count, smallest, largest, .. } = blocks;
        let chain: Result<Vec<ReturnAddress>, Unidentified> =
            chain.into_iter().map(|after| self.return_address(pid, after)).collect();
        Ok(CuredIdentity::Blocks { by: by.to_owned(), chain: chain?, count, smallest, largest })
    }

    fn return_address(&mut self, pid: u32, after: u64) -> Result<ReturnAddress, Unidentified> {
        let (id, distance) =
            self.objects.get(&pid).and_then(|objects| objects.in_file(after)).ok_or(Unidentified::NoFile)?;
        let module = self.files.get(id).ok_or(Unidentified::NoFile)?;
        let (file, address) = (with_id(&module.file)?, module.address(distance));
        let place = self.place(pid);
        // The call is before the address to which it returns.
        let name = CodeNames::name(self, place, after.saturating_sub(1)).to_string();
        Ok(ReturnAddress { module: file, address, name })
    }

    /// The block of an object that had an address at a time.
    pub fn block_at(&self, pid: u32, object: ObjectId, address: u64, time: u64) -> Option<ObjectBlock> {
        self.objects.get(&pid)?.block_at(object, address, time)
    }

    /// The numbers of the blocks of these objects of a process, in their order of allocation.
    pub fn numbered(&self, pid: u32, of: &HashSet<ObjectId>) -> HashMap<ObjectId, HashMap<(u64, u64), u64>> {
        self.objects.get(&pid).map(|objects| objects.numbered(of)).unwrap_or_default()
    }
}

fn with_id(file: &ProgramFile) -> Result<ProgramFile, Unidentified> {
    match file.build_id.is_empty() {
        true => Err(Unidentified::NoBuildId),
        false => Ok(file.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_told_from_other_verbs() {
        assert!(
            is_launcher("numa", b"numa\0run\0./app\0") && is_launcher("numaplace", b"numaplace\0./app\0")
        );
        assert!(!is_launcher("numa", b"numa\0bench\0") && !is_launcher("app", b"numa\0run\0./app\0"));
    }
}
