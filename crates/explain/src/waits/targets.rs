//! From a call and its arguments to what the thread waits for.

use super::WaitKind;
use super::futex;
use super::open_files::{OpenFile, OpenFiles, watched};
use crate::objects::ObjectId;
use numakit_sampling::process::ObservedProcess;
use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::syscall::{CallKind, call};

/// Descriptors of a list that are read.
const MAX_POLLED: u64 = 16;
/// Bytes of an entry in the list of `poll`.
const POLL_BYTES: u64 = 8;
/// Descriptors in a word of the sets of `select`.
const SELECT_BITS: u64 = 64;
/// Sockets that are kept of the descriptors for one of which a thread waits: those that were opened first. A server opens those
/// that listen before those of its clients.
const MAX_SOCKETS: usize = 4;

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitTarget {
    /// Nothing that has a name.
    Nothing,
    /// A futex.
    Futex {
        /// Its address.
        address: u64,
        /// The object that has it.
        object: Option<ObjectId>,
    },
    /// The global interpreter lock of Python, by its address.
    Gil(u64),
    /// A thread.
    Thread(u32),
    /// A file, a pipe or a socket.
    Open(OpenFile),
    /// One of this number of descriptors, and the first sockets among them.
    Many(u64, [Option<OpenFile>; MAX_SOCKETS]),
}

/// A wait as one look shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundWait {
    /// What kind it is, as far as that is known before functions have names.
    pub kind: WaitKind,
    /// What the thread waits for.
    pub target: WaitTarget,
    /// Who holds the lock.
    pub owner: Option<u32>,
}

/// A process as calls of its threads are looked at.
#[derive(Debug)]
pub struct CallContext<'a> {
    /// Where /proc is.
    pub root: &'a SysRoot,
    /// The process.
    pub pid: u32,
    /// Its memory.
    pub process: Option<&'a ObservedProcess>,
    /// The open files so far.
    pub files: &'a mut OpenFiles,
}

impl CallContext<'_> {
    /// What a thread waits for in this call.
    pub fn wait(&mut self, number: i64, arguments: &[u64; 6]) -> FoundWait {
        let [first, second, ..] = *arguments;
        match call(number).map_or(CallKind::Other, |(_, kind)| kind) {
            CallKind::Futex => self.futex(arguments),
            CallKind::Descriptor => self.descriptor(first),
            CallKind::Poll => {
                let polled = self.polled(first, second);
                self.one_of(second, &polled)
            }
            CallKind::Select => {
                let selected = self.selected(first, second);
                self.one_of(first.min(selected.len() as u64), &selected)
            }
            CallKind::Epoll => {
                let watched = watched(self.root, self.pid, first);
                match watched.as_slice() {
                    [] => found(WaitKind::Events, WaitTarget::Many(0, [None; MAX_SOCKETS])),
                    all => self.one_of(all.len() as u64, all),
                }
            }
            CallKind::Timer => found(WaitKind::Timer, WaitTarget::Nothing),
            CallKind::Child => found(WaitKind::Child, WaitTarget::Nothing),
            CallKind::Signal => found(WaitKind::Signal, WaitTarget::Nothing),
            // Only the state of the thread tells whether it waits for a disk.
            CallKind::Files | CallKind::Other => found(WaitKind::Kernel, WaitTarget::Nothing),
        }
    }

    /// Who holds the lock of a futex now, for a thread that still waits for it.
    pub fn owner(&self, arguments: &[u64; 6]) -> Option<u32> {
        self.used(arguments).owner
    }

    fn used(&self, arguments: &[u64; 6]) -> futex::FutexUse {
        let word = |address| {
            let mut bytes = [0; 4];
            self.process?.read(address, &mut bytes).then(|| u32::from_ne_bytes(bytes))
        };
        futex::used(arguments, &word, &|number| self.thread(number))
    }

    fn futex(&self, arguments: &[u64; 6]) -> FoundWait {
        let used = self.used(arguments);
        let target = match (used.kind, used.owner) {
            (WaitKind::Thread, Some(thread)) => WaitTarget::Thread(thread),
            _ => WaitTarget::Futex { address: arguments[0], object: None },
        };
        let owner = used.owner.filter(|_| used.kind == WaitKind::Lock);
        FoundWait { kind: used.kind, target, owner }
    }

    /// The thread of the process that its program knows by this number. In a PID namespace that is another one than here.
    fn thread(&self, number: u32) -> Option<u32> {
        if number == 0 {
            return None;
        }
        let process = TaskDir::of(self.root, self.pid);
        if process.thread(number).exists() {
            return Some(number);
        }
        process.threads_by_inner_number().get(&number).copied()
    }

    fn descriptor(&mut self, descriptor: u64) -> FoundWait {
        let Self { root, pid, files, .. } = self;
        match files.find(root, *pid, descriptor) {
            Some(file) => {
                let kind = files.get(file).map_or(WaitKind::Kernel, |identity| identity.kind());
                found(kind, WaitTarget::Open(file))
            }
            None => found(WaitKind::Kernel, WaitTarget::Nothing),
        }
    }

    /// The wait for one of `count` descriptors, of which these are known. Without any, it is a wait for the time.
    fn one_of(&mut self, count: u64, known: &[u64]) -> FoundWait {
        match (count, known) {
            (0, _) => found(WaitKind::Timer, WaitTarget::Nothing),
            (1, [only]) => self.descriptor(*only),
            (count, _) => found(WaitKind::Events, WaitTarget::Many(count, self.sockets(known))),
        }
    }

    /// The first sockets of these descriptors.
    fn sockets(&mut self, known: &[u64]) -> [Option<OpenFile>; MAX_SOCKETS] {
        let Self { root, pid, files, .. } = self;
        let mut known = known.to_vec();
        known.sort_unstable();
        let socket = |descriptor: &u64| {
            let file = files.find(root, *pid, *descriptor)?;
            (files.get(file)?.kind() == WaitKind::Socket).then_some(file)
        };
        let mut sockets = known.iter().take(MAX_POLLED as usize).filter_map(socket);
        std::array::from_fn(|_| sockets.next())
    }

    /// The descriptors in a list of `poll`.
    fn polled(&self, address: u64, count: u64) -> Vec<u64> {
        let mut bytes = vec![0; (count.min(MAX_POLLED) * POLL_BYTES) as usize];
        let is_read = self.process.is_some_and(|process| process.read(address, &mut bytes));
        let descriptor = |entry: &[u8]| Some(i32::from_ne_bytes(entry.get(..4)?.try_into().ok()?));
        let descriptors = bytes.chunks_exact(POLL_BYTES as usize).filter(|_| is_read).filter_map(descriptor);
        descriptors.filter_map(|descriptor| u64::try_from(descriptor).ok()).collect()
    }

    /// The descriptors in the first word of the set for reading of `select`.
    fn selected(&self, below: u64, set: u64) -> Vec<u64> {
        let mut bytes = [0; 8];
        let is_read = self.process.is_some_and(|process| process.read(set, &mut bytes));
        let word = if is_read { u64::from_ne_bytes(bytes) } else { 0 };
        (0..below.min(SELECT_BITS)).filter(|bit| word >> bit & 1 == 1).collect()
    }
}

fn found(kind: WaitKind, target: WaitTarget) -> FoundWait {
    FoundWait { kind, target, owner: None }
}
