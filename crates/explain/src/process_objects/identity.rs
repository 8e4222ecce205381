//! Which objects of this process are the same as objects of other processes.

use super::ProcessObjects;
use crate::identity::{FileId, ObjectIdentity, ObjectOwner, StartedProgram};
use crate::objects::{ObjectId, ObjectOrigin};
use crate::python::is_script;
use std::hash::{DefaultHasher, Hash, Hasher};

impl ProcessObjects {
    /// The identity of an object; `program` is asked for what belongs to the process as a whole. `None` for what is of this
    /// process alone, such as blocks that code allocates which was compiled while it ran.
    pub fn identity(
        &self,
        object: ObjectId,
        program: impl FnOnce() -> Option<StartedProgram>,
    ) -> Option<ObjectIdentity> {
        let origin = self.row(object)?.origin.clone();
        let of_code = |site: u64| {
            let module = self.module(site)?;
            Some((ObjectOwner::File(module.file), site - module.addresses.start))
        };
        let (owner, origin) = match origin {
            ObjectOrigin::Allocated { by, site, callers } => {
                let (owner, at) = of_code(site)?;
                let chain = callers.and_then(|callers| self.callers.chain(site, callers)).unwrap_or_default();
                // Chains have numbers of their own in each process: so its calls identify it. Those of Python are the same in all.
                let call = |call: &u64| (of_code(*call), is_script(*call).then_some(*call));
                let calls: Vec<_> = chain.iter().map(call).collect();
                let mut told = DefaultHasher::new();
                (at, calls).hash(&mut told);
                let site = if callers.is_some() { told.finish() } else { at };
                (owner, ObjectOrigin::Allocated { by, site, callers: callers.map(|_| 0) })
            }
            ObjectOrigin::SmallBlocks { site } => {
                let (owner, site) = of_code(site)?;
                (owner, ObjectOrigin::SmallBlocks { site })
            }
            ObjectOrigin::Variable { ref module, .. } => (ObjectOwner::File(self.file(module)?), origin),
            ObjectOrigin::ThreadLocal { name: Some(_) } => {
                (ObjectOwner::File(self.modules.first()?.file), origin)
            }
            ObjectOrigin::File { ref path } => {
                let file = *self.mapped_files.get(path)?;
                (ObjectOwner::File(file), ObjectOrigin::File { path: String::new() })
            }
            ObjectOrigin::SharedMemory { file, .. } => {
                (ObjectOwner::File(file), ObjectOrigin::SharedMemory { name: String::new(), file })
            }
            ObjectOrigin::ThreadLocal { name: None }
            | ObjectOrigin::Stack { .. }
            | ObjectOrigin::Mapping { .. } => (ObjectOwner::Program(program()?), origin),
        };
        Some(ObjectIdentity { owner, origin })
    }

    /// The file of the program or library with this name.
    pub fn file(&self, name: &str) -> Option<FileId> {
        Some(self.modules.iter().find(|known| super::name(&known.path) == name)?.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::VariableFiles;
    use numakit_sampling::process::parse_mappings;
    use std::path::PathBuf;

    /// The identity of the object at an address of a process with a program, a library and shared memory, which begin at
    /// these addresses.
    fn identity(
        program: u64,
        shared: (u64, &str, u32),
        offset: u64,
        is_shared: bool,
    ) -> Option<ObjectIdentity> {
        let (at, path, inode) = shared;
        let maps = format!(
            "{program:x}-{:x} r-xp 00000000 08:01 7 /no/such/app\n{:x}-{:x} rw-p 00000000 00:00 0 [heap]\n\
             {at:x}-{:x} rw-s 00000000 00:01 {inode} {path}\n",
            program + 0x1000,
            program + 0x10_0000,
            program + 0x20_0000,
            at + 0x10_0000,
        );
        let mut objects = ProcessObjects::new(PathBuf::from("/"));
        objects.update(&parse_mappings(&maps), 1);
        if !is_shared && offset < 0x1000 {
            let origin = ObjectOrigin::Allocated { by: "malloc", site: program + offset, callers: None };
            let block = objects.timeline.add(program + 0x11_0000..program + 0x11_0100, 2, &origin)?;
            return objects.identity(block, || None);
        }
        let address = if is_shared { at + offset } else { program + offset };
        let found = objects.find(address, 5, &mut VariableFiles::default())?;
        objects.identity(found, || None)
    }

    #[test]
    fn shared_memory_and_allocation_sites_are_the_same_at_any_address() {
        let one = (0x7f00_0000_0000, "/dev/zero (deleted)", 9);
        let other = (0x7f55_0000_0000, "/dev/zero (deleted)", 9);
        let shared = identity(0x40_0000, one, 64, true);
        assert!(shared.is_some());
        assert_eq!(shared, identity(0x55d0_0000_0000, other, 640, true));
        // The kernel has one path for all shared memory without a name.
        assert_ne!(shared, identity(0x40_0000, (one.0, one.1, 10), 64, true));
        let site = identity(0x40_0000, one, 0x50, false);
        assert!(site.is_some());
        assert_eq!(site, identity(0x55d0_0000_0000, other, 0x50, false));
        assert_ne!(site, identity(0x40_0000, one, 0x60, false));
        // Nobody knows which program the heap belongs to.
        assert_eq!(identity(0x40_0000, one, 0x10_0000, false), None);
    }
}
