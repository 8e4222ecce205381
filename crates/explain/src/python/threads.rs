//! Which state of Python belongs to which thread.

use super::reader::{ProcessMemory, PythonReader, PythonThread};
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, clock};
use std::collections::HashMap;

/// Threads that are not known are looked for again after this time, in ns.
const LIST: u64 = 100_000_000;

/// The threads of a process that run Python.
#[derive(Debug, Default)]
pub struct KnownThreads {
    /// The state of each thread, and the number by which its process knows it.
    states: HashMap<u32, (u64, u32)>,
    listed: u64,
}

impl KnownThreads {
    /// The state of a thread of process `pid`; `None` if it runs no Python.
    pub fn state(
        &mut self,
        pid: u32,
        thread: u32,
        reader: &PythonReader,
        memory: ProcessMemory<'_>,
    ) -> Option<u64> {
        if let Some((state, number)) = self.states.get(&thread) {
            // Its thread may have ended, and the memory belong to something else.
            if reader.numbers(*state, memory).contains(&Some(*number)) {
                return Some(*state);
            }
            self.states.remove(&thread);
        }
        self.list(pid, reader, memory);
        self.states.get(&thread).map(|(state, _)| *state)
    }

    /// The thread that has a state.
    pub fn thread(
        &mut self,
        pid: u32,
        state: u64,
        reader: &PythonReader,
        memory: ProcessMemory<'_>,
    ) -> Option<u32> {
        let of =
            |all: &Self| all.states.iter().find(|(_, known)| known.0 == state).map(|(thread, _)| *thread);
        of(self).or_else(|| {
            self.list(pid, reader, memory);
            of(self)
        })
    }

    fn list(&mut self, pid: u32, reader: &PythonReader, memory: ProcessMemory<'_>) {
        let now = clock::monotonic();
        if self.listed != 0 && now.saturating_sub(self.listed) < LIST {
            return;
        }
        self.listed = now;
        let here = TaskDir::of(&SysRoot::host(), pid).threads_by_inner_number();
        self.states = matched(&reader.threads(memory), &here);
    }
}

fn matched(threads: &[PythonThread], here: &HashMap<u32, u32>) -> HashMap<u32, (u64, u32)> {
    let thread = |thread: &PythonThread| {
        let number = thread.numbers.into_iter().flatten().find(|number| here.contains_key(number))?;
        Some((*here.get(&number)?, (thread.state, number)))
    };
    threads.iter().filter_map(thread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_belongs_to_the_thread_whose_number_it_has() {
        let state = |state, numbers| PythonThread { state, numbers };
        let threads = [
            state(0x10, [Some(7), None]),
            state(0x20, [Some(999), Some(8)]),
            state(0x30, [Some(99), None]),
            state(0x40, [None, None]),
        ];
        let here = HashMap::from([(7, 107), (8, 108), (9, 109)]);
        let expected = HashMap::from([(107, (0x10, 7)), (108, (0x20, 8))]);
        assert_eq!(matched(&threads, &here), expected);
    }
}
