//! Reading a file into the page cache by a memory policy.

use crate::{FileProgress, FilesError, FoundFile};
use numakit_model::CpuSet;
use numakit_sys::policy::MemoryPolicy;
use numakit_sys::{file, sched};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

/// Maximum of threads: enough requests for a fast disk.
const MAX_THREADS: usize = 8;

/// Bytes that a thread reads at a time.
const PART: u64 = 16 << 20;

/// Bytes of a read.
const READ: usize = 1 << 20;

/// Where the kernel allocates the pages that are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The policy of the reading threads.
    pub policy: MemoryPolicy,
    /// The CPUs of the wanted node, if policies are refused: the threads then run there, and the kernel's default policy
    /// allocates on a thread's node. `None` if that is no substitute.
    pub cpus: Option<CpuSet>,
}

impl Reading {
    /// Applies the policy or the CPUs to the calling thread.
    fn apply(&self) -> io::Result<()> {
        // The kernel's default needs no call, so it works where no call is permitted.
        let is_default = self.policy == MemoryPolicy::local();
        match (self.policy.set(), &self.cpus) {
            (Err(_), None) if is_default => Ok(()),
            (Err(_), Some(cpus)) => sched::set_affinity(cpus),
            (result, _) => result,
        }
    }
}

/// Reads the whole file; returns the bytes read. Pages that are cached already stay where they are.
pub fn load(
    found: &FoundFile,
    file: &File,
    reading: &Reading,
    progress: FileProgress<'_>,
) -> Result<u64, FilesError> {
    let size = file.metadata().map_err(|error| found.error("its size cannot be read", error))?.len();
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let available = thread::available_parallelism().map_or(1, usize::from);
    let threads = available.clamp(2, MAX_THREADS).min(size.div_ceil(PART).max(1) as usize);
    let (done, news) = mpsc::channel();
    let result = thread::scope(|scope| {
        let readers: Vec<_> = (0..threads)
            .map(|_| {
                let (next, failed, done) = (&next, &failed, done.clone());
                let read = move || reading.apply().and_then(|()| read_parts(file, size, next, failed, &done));
                scope.spawn(move || read().inspect_err(|_| failed.store(true, Ordering::Relaxed)))
            })
            .collect();
        drop(done);
        let mut read = 0;
        for bytes in news {
            read += bytes;
            progress(read, size);
        }
        let ended = |reader: thread::ScopedJoinHandle<'_, io::Result<()>>| {
            reader.join().unwrap_or_else(|_| Err(io::Error::other("a reading thread failed")))
        };
        readers.into_iter().map(ended).collect::<io::Result<Vec<()>>>().map(|_| read)
    });
    result.map_err(|error| found.error("it cannot be read under this memory policy", error))
}

/// Reads parts until there are none. Each thread has a descriptor of its own, as read-ahead follows one reader.
fn read_parts(
    file: &File,
    size: u64,
    next: &AtomicU64,
    failed: &AtomicBool,
    done: &Sender<u64>,
) -> io::Result<()> {
    let own = File::open(file::path_of(file))?;
    let mut buffer = vec![0; READ];
    while !failed.load(Ordering::Relaxed) {
        let start = next.fetch_add(PART, Ordering::Relaxed);
        let (mut at, end) = (start, (start + PART).min(size));
        while at < end {
            let wanted = (end - at).min(READ as u64) as usize;
            match own.read_at(&mut buffer[..wanted], at) {
                // The file became shorter.
                Ok(0) => return Ok(()),
                Ok(read) => {
                    at += read as u64;
                    // The receiver lives as long as the threads.
                    let _ = done.send(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if start >= size {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::testing::Scratch;
    use crate::{FileResidence, evict};
    use numakit_model::CpuSet;

    fn opened(scratch: &Scratch) -> (FoundFile, File) {
        let found = FoundFile { path: scratch.0.clone(), id: (0, 0) };
        let file = found.open().unwrap();
        (found, file)
    }

    #[test]
    fn a_file_is_cached_whole_after_loading() {
        let scratch = Scratch::file("load", (40 << 20) + 5);
        let (found, file) = opened(&scratch);
        evict(&found, &file).unwrap();
        let policy = MemoryPolicy::bind(&CpuSet::range(0, 0));
        if let Err(error) = policy.attempt() {
            let refused = format_args!("a memory policy is refused here: {error}");
            return numakit_skips::PRIVILEGES.skip(refused);
        }
        let before = MemoryPolicy::current().unwrap();
        let mut last = (0, 0);
        let reading = Reading { policy, cpus: None };
        let read = load(&found, &file, &reading, &mut |done, all| last = (done, all)).unwrap();
        assert_eq!((read, last), ((40 << 20) + 5, ((40 << 20) + 5, (40 << 20) + 5)));
        let residence = FileResidence::of(&file, &mut |_, _| ()).unwrap();
        assert_eq!(residence.on(0), Some((40 << 20) + sched::page_size()));
        assert_eq!(MemoryPolicy::current().unwrap(), before, "only the readers have the policy");
    }

    #[test]
    fn a_policy_that_is_refused_is_an_error_unless_cpus_replace_it() {
        let scratch = Scratch::file("refused", 100_000);
        let (found, file) = opened(&scratch);
        let policy = MemoryPolicy::bind(&CpuSet::range(900, 900));
        let reading = Reading { policy: policy.clone(), cpus: None };
        let error = load(&found, &file, &reading, &mut |_, _| ()).unwrap_err().to_string();
        assert!(error.contains("it cannot be read under this memory policy: "), "{error}");
        let reading = Reading { policy, cpus: Some(sched::affinity().unwrap()) };
        assert_eq!(load(&found, &file, &reading, &mut |_, _| ()).unwrap(), 100_000);
    }
}
