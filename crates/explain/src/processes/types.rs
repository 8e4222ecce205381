//! By what the types of variables and blocks are known.

use super::Processes;
use crate::member_path::pointee::CallResult;
use crate::members::{TypeSource, TypedMemory};
use crate::objects::{ObjectId, ObjectOrigin};
use numakit_sampling::result_flow;
use std::path::PathBuf;

impl Processes {
    /// The variable or block, of those that were found, that has an address.
    pub fn typed(&self, pid: u32, object: ObjectId, address: u64) -> Option<TypedMemory> {
        let objects = self.objects.get(&pid)?;
        let source = match &objects.row(object)?.origin {
            ObjectOrigin::Variable { .. } => {
                let (path, address) = objects.variable_in_file(object)?;
                TypeSource::Variable(path, address)
            }
            ObjectOrigin::Allocated { site, .. } => TypeSource::Call(pid, *site),
            _ => return None,
        };
        Some(TypedMemory { start: objects.start(object, address)?, source })
    }

    /// The file with the code before an address, which calls, and where the result of that call goes.
    pub fn call_result(&self, pid: u32, after: u64) -> Option<(PathBuf, CallResult)> {
        let pieces = self.code.get(&pid)?;
        let piece = pieces.iter().rev().find(|piece| piece.addresses.contains(&after) && piece.has_file)?;
        let offset = after - piece.addresses.start + piece.offset;
        let places = result_flow::places(after, self.open.get(&pid)?.as_ref()?);
        Some((piece.path.clone(), CallResult { after, offset, places }))
    }
}
