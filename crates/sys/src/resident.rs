//! Resident memory of this process: now, and the most since a moment.

use crate::SysRoot;
use crate::proc::{TaskDir, TaskStatus};

/// Bytes that are resident now. This is the exact sum over all mappings, if the kernel prints it (4.14 and later): the
/// kernel's counter may be wrong by some pages for each CPU.
pub fn now() -> Option<u64> {
    let root = SysRoot::host();
    let own = TaskDir::own(&root);
    let sum = own.text("smaps_rollup").ok().and_then(|text| TaskStatus::new(text).bytes("Rss"));
    sum.or_else(|| own.status().ok()?.bytes("VmRSS"))
}

/// The most bytes that were resident since [`begin_peak`], or since the start of the process where the kernel lets nobody begin.
pub fn peak() -> Option<u64> {
    TaskDir::own(&SysRoot::host()).status().ok()?.bytes("VmHWM")
}

/// Lets the peak begin now.
pub fn begin_peak() {
    // 5 is the kernel's word for resetting the peak. If it refuses, the peak is that of the whole life of the process.
    let _ = std::fs::write(TaskDir::own(&SysRoot::host()).path("clear_refs"), "5");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::Region;

    #[test]
    fn memory_that_was_touched_is_resident() {
        const BYTES: usize = 64 << 20;
        begin_peak();
        let before = now().unwrap();
        let mut memory = Region::map(BYTES).unwrap();
        memory.touch(4096);
        let with = now().unwrap();
        // Other tests run in this process.
        assert!(with > before + BYTES as u64 / 2, "{before} {with}");
        drop(memory);
        assert!(peak().unwrap() > before + BYTES as u64 / 2);
    }
}
