//! What processes did with their memory, by the log of allocations.

use super::{LARGE, Processes, RecentProgram, root_of};
use crate::process_objects::{AllocationSite, ProcessObjects, PushedCalls};
use numakit_sys::allocation_log::{AllocationEvent, AllocationRecord};

impl Processes {
    /// What a process did with its memory. Records of a program may come before the news that it is executed.
    pub fn log(&mut self, record: &AllocationRecord) {
        let pid = record.process;
        self.order.note(record);
        match record.event {
            AllocationEvent::ProcessBegan { sites, .. } => {
                let is_told = self.told.remove(&pid);
                let program = RecentProgram { began: record.time, is_told, records: Vec::new() };
                self.recent.insert(pid, program);
                match sites {
                    Some(sites) => self.sites.insert(pid, sites),
                    None => self.sites.remove(&pid),
                };
            }
            AllocationEvent::ProcessForked { parent } => {
                if let Some(objects) = self.objects.get(&parent).cloned() {
                    self.objects.insert(pid, objects);
                }
                if let Some(sites) = self.sites.get(&parent).copied() {
                    self.sites.insert(pid, sites);
                }
            }
            _ => {
                self.recent.get_mut(&pid).into_iter().for_each(|program| program.keep(record));
                let bytes = record.event.allocated_bytes();
                let is_large = bytes >= LARGE;
                let call = record.call.as_ref().filter(|_| bytes > 0);
                // The thread goes on, and to find its chain may take a while.
                let look = call.and_then(|_| self.look_at_allocating(record));
                let chain = call.and_then(|call| self.allocation_chain(pid, call, is_large));
                let script = chain.as_ref().and_then(|chain| self.allocating_script(pid, &chain.told, look));
                let parts = chain.as_ref().and_then(|chain| Some((chain, chain.told.split_first()?)));
                let callers: Vec<u64> = script
                    .into_iter()
                    .chain(parts.iter().flat_map(|(_, (_, callers))| *callers).copied())
                    .collect();
                let site = parts.map(|(chain, (after, _))| AllocationSite {
                    after: *after,
                    callers: is_large.then_some(&callers[..]),
                    pushed: PushedCalls { chain: &chain.pushed, deciding: chain.deciding },
                });
                let Some(process) = self.open.get(&pid).and_then(Option::as_ref) else { return };
                let objects = self.objects.entry(pid).or_insert_with(|| ProcessObjects::new(root_of(pid)));
                objects.update(process.mappings(), process.refreshed());
                let node = record.cpu.and_then(|cpu| self.node_of_cpu.get(&cpu).copied());
                objects.log(record, site, self.threshold, node);
            }
        }
    }
}
