//! First touches by several processes at one moment.

use super::{Advice, Region};
use crate::{check, clock, sched};
use numakit_model::CpuSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time in which all children see when they begin, in ns: for the first child, and for each further one.
const LEAD: u64 = 200_000;
const LEAD_EACH: u64 = 20_000;
/// Children that are not ready after this time are not waited for.
const PATIENCE: u64 = 10_000_000_000;
/// The time that a child reports if it could not do its work.
const FAILED: u64 = u64::MAX;

/// What parent and children tell each other: how many children are ready, when they begin, and how long each took.
struct Talk {
    words: *const AtomicU64,
    count: usize,
}

impl Talk {
    fn map(count: usize) -> io::Result<Self> {
        let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let words = unsafe { libc::mmap(std::ptr::null_mut(), count * 8, protection, kind, -1, 0) };
        if words == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { words: words.cast(), count })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the mapping has `count` words, and lives as long as this.
        unsafe { &*self.words.add(at.min(self.count - 1)) }
    }

    fn ready(&self) -> &AtomicU64 {
        self.word(0)
    }

    fn begin(&self) -> &AtomicU64 {
        self.word(1)
    }

    fn time(&self, child: usize) -> &AtomicU64 {
        self.word(2 + child)
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, to which there are no references.
        unsafe { libc::munmap(self.words.cast_mut().cast(), self.count * 8) };
    }
}

/// Starts a process on each of these CPUs. Each process maps `bytes`, and all of them then begin, at one moment, to write a
/// byte every `step` bytes. Returns how long each took, in ns. The processes have ended when this returns.
pub fn touch_in_processes(cpus: &[u32], bytes: usize, pages: Advice, step: usize) -> io::Result<Vec<u64>> {
    let talk = Talk::map(cpus.len() + 2)?;
    let mut children = Vec::with_capacity(cpus.len());
    let mut refused = None;
    for (child, &cpu) in cpus.iter().enumerate() {
        let on = CpuSet::range(cpu, cpu);
        // SAFETY: the child makes only system calls and writes to memory of its own and to the shared words: nothing
        // that locks or allocates. The set was made before.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: plain integers; the child ends when its parent's thread does, and without running anything
                // of the parent's.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    talk.time(child).store(FAILED, Ordering::Relaxed);
                    in_child(&talk, child, &on, bytes, pages, step);
                    libc::_exit(0);
                }
            }
            error if error < 0 => {
                refused = Some(io::Error::last_os_error());
                break;
            }
            process => children.push(process),
        }
    }
    wait_until_ready(&talk, children.len() as u64);
    let lead = LEAD + LEAD_EACH * children.len() as u64;
    talk.begin().store(clock::monotonic() + lead, Ordering::Release);
    for &process in &children {
        reap(process)?;
    }
    match refused {
        Some(error) => Err(error),
        None => {
            let times = (0..children.len()).map(|child| talk.time(child).load(Ordering::Acquire));
            times
                .map(
                    |time| {
                        if time == FAILED { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(time) }
                    },
                )
                .collect()
        }
    }
}

/// The work of a child. It counts as ready even if it failed, since the parent waits for it.
fn in_child(talk: &Talk, child: usize, on: &CpuSet, bytes: usize, pages: Advice, step: usize) {
    let bound = sched::set_affinity(on).is_ok();
    let region = Region::map(bytes);
    talk.ready().fetch_add(1, Ordering::AcqRel);
    let Ok(mut region) = region else { return };
    let _ = region.advise(pages);
    let begin = loop {
        match talk.begin().load(Ordering::Acquire) {
            // Other children may need this CPU to get ready.
            0 => std::thread::yield_now(),
            begin => break begin,
        }
    };
    while clock::monotonic() < begin {
        std::hint::spin_loop();
    }
    region.touch(step);
    if bound {
        talk.time(child).store(clock::monotonic() - begin, Ordering::Release);
    }
}

fn wait_until_ready(talk: &Talk, children: u64) {
    let end = clock::monotonic() + PATIENCE;
    while talk.ready().load(Ordering::Acquire) < children && clock::monotonic() < end {
        std::thread::yield_now();
    }
}

fn reap(process: i32) -> io::Result<()> {
    loop {
        let mut status = 0;
        // SAFETY: a child of this process; the pointer is to a live integer.
        match check(unsafe { libc::waitpid(process, &mut status, 0) } as i64) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_touches_its_memory_and_ends() {
        let cpus: Vec<u32> = sched::affinity().unwrap().iter().collect();
        let page = sched::page_size() as usize;
        let faults = || clock::ended_children().faults;
        let before = faults();
        let times = touch_in_processes(&cpus, 64 * page, Advice::Small, page).unwrap();
        assert_eq!(times.len(), cpus.len());
        assert!(times.iter().all(|time| (1..FAILED).contains(time)), "{times:?}");
        assert!(faults() - before >= 64 * cpus.len() as u64);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        assert!(touch_in_processes(&[9999], 4096, Advice::Small, 4096).is_err());
    }
}
