//! Which of its uses a wait for a futex is, and who holds the lock. What libraries keep at the address tells that, as far as
//! it can be told before functions have names.

use super::WaitKind;
use crate::code::CodeName;

/// Bits of the operation that say how, not what.
const PRIVATE: u64 = 128;
const CLOCK_REALTIME: u64 = 256;
/// Operations.
const WAIT: u64 = 0;
const LOCK_PI: u64 = 6;
const WAIT_REQUEUE_PI: u64 = 11;
const LOCK_PI2: u64 = 13;
/// Parts of a word that has the number of the owner: robust locks, those with priority inheritance, and all of musl.
const OWNER: u32 = 0x3fff_ffff;
const WAITERS: u32 = 0x8000_0000;
/// The value of a lock that is held and waited for, of glibc, Rust and Go.
const CONTENDED: u32 = 2;
/// Bytes from a POSIX mutex of glibc to the number of its owner.
pub const MUTEX_OWNER: u64 = 8;

/// What a futex shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutexUse {
    /// What the thread waits for.
    pub kind: WaitKind,
    /// The thread that holds the lock, or whose end is waited for.
    pub owner: Option<u32>,
}

/// Judges a wait by the arguments of the call. `word` reads 32 bits of the program, and `thread` says which thread of the
/// process a number there means.
pub fn used(
    arguments: &[u64; 6],
    word: &dyn Fn(u64) -> Option<u32>,
    thread: &dyn Fn(u32) -> Option<u32>,
) -> FutexUse {
    let [address, operation, expected, ..] = *arguments;
    let (expected, is_private) = (expected as u32, operation & PRIVATE != 0);
    let lock = |owner| FutexUse { kind: WaitKind::Lock, owner };
    let other = |kind| FutexUse { kind, owner: None };
    match operation & !(PRIVATE | CLOCK_REALTIME) {
        LOCK_PI | LOCK_PI2 => lock(word(address).and_then(|word| thread(word & OWNER))),
        WAIT_REQUEUE_PI => other(WaitKind::Condition),
        _ if expected & WAITERS != 0 && thread(expected & OWNER).is_some() => lock(thread(expected & OWNER)),
        // The kernel clears the number of a thread that ends, and wakes who waits for that.
        _ if !is_private && thread(expected).is_some() => {
            FutexUse { kind: WaitKind::Thread, owner: thread(expected) }
        }
        plain if expected == CONTENDED => {
            let owner = word(address.wrapping_add(MUTEX_OWNER)).filter(|tid| *tid > 0).and_then(thread);
            if owner.is_some() || plain == WAIT { lock(owner) } else { other(WaitKind::OtherThread) }
        }
        _ => other(WaitKind::OtherThread),
    }
}

/// Functions in which threads wait, by a part of their names, and what for. The first function of a call chain that is in the
/// list decides.
const FUNCTIONS: &[(&str, WaitKind)] = &[
    ("pthread_cond_", WaitKind::Condition),
    ("cnd_wait", WaitKind::Condition),
    ("condition_variable", WaitKind::Condition),
    ("Condvar", WaitKind::Condition),
    ("sem_wait", WaitKind::Semaphore),
    ("sem_timedwait", WaitKind::Semaphore),
    ("sem_clockwait", WaitKind::Semaphore),
    ("barrier", WaitKind::Barrier),
    ("Barrier", WaitKind::Barrier),
    ("__kmp_", WaitKind::Barrier),
    ("pthread_join", WaitKind::Thread),
    ("rwlock", WaitKind::Lock),
    ("RwLock", WaitKind::Lock),
    ("mutex_lock", WaitKind::Lock),
    ("lock_contended", WaitKind::Lock),
    ("lll_lock", WaitKind::Lock),
    ("GOMP_critical", WaitKind::Lock),
    ("omp_set_lock", WaitKind::Lock),
];

/// The name of the lock that lets one thread at a time run Python.
pub const GIL: &str = "GIL (global interpreter lock of Python)";

/// Locks of runtimes, by the function that waits for them. They wait by other means than locks of libraries do.
const RUNTIME_LOCKS: &[(&str, &str)] =
    &[("take_gil", GIL), ("ObjectMonitor::enter", JAVA_MONITOR), ("ObjectMonitor::Enter", JAVA_MONITOR)];

/// A monitor of which nothing else is known.
pub const JAVA_MONITOR: &str = "monitor of Java";

/// Libraries whose threads wait for their team, by the begin of the name.
const TEAMS: &[&str] = &["libgomp.so", "libomp.so", "libiomp"];

/// What the functions of a call chain, innermost first, say about a wait for another thread; with the name of the lock if that is
/// a runtime's.
pub fn by_code(kind: WaitKind, chain: &[CodeName]) -> (WaitKind, Option<&'static str>) {
    let names = || chain.iter().filter_map(|code| code.function.as_deref());
    let of_runtime = |name: &str| RUNTIME_LOCKS.iter().find(|(function, _)| name.contains(function));
    if let Some((_, lock)) = names().find_map(of_runtime) {
        return (WaitKind::Lock, Some(lock));
    }
    if kind != WaitKind::OtherThread {
        return (kind, None);
    }
    let known = |name: &str| FUNCTIONS.iter().find(|(part, _)| name.contains(part)).map(|(_, kind)| *kind);
    let is_team = |code: &CodeName| TEAMS.iter().any(|team| code.module.starts_with(team));
    let of_team = chain.first().filter(|code| is_team(code)).map(|_| WaitKind::Barrier);
    (names().find_map(known).or(of_team).unwrap_or(kind), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u64 = 0x1000;

    /// The use of a futex by a program with threads 70 and 71.
    fn wait(operation: u64, expected: u64, words: &[(u64, u32)]) -> (WaitKind, Option<u32>) {
        let word = |at: u64| words.iter().find(|(address, _)| *address == at).map(|(_, word)| *word);
        let thread = |tid: u32| [70, 71].contains(&tid).then_some(tid);
        let found = used(&[ADDRESS, operation, expected, 0, 0, 0], &word, &thread);
        (found.kind, found.owner)
    }

    #[test]
    fn the_owner_of_a_lock_is_where_its_library_keeps_it() {
        use WaitKind::{Condition, Lock, OtherThread, Thread};
        let (private, bitset) = (PRIVATE, PRIVATE | 9);
        assert_eq!(wait(private, 2, &[(ADDRESS, 2), (ADDRESS + 8, 71)]), (Lock, Some(71)), "pthread mutex");
        assert_eq!(wait(private, 2, &[(ADDRESS, 2), (ADDRESS + 8, 9)]), (Lock, None), "a lock within glibc");
        assert_eq!(wait(bitset, 2, &[(ADDRESS, 2)]), (OtherThread, None), "its functions tell");
        assert_eq!(wait(private, 0x8000_0046, &[]), (Lock, Some(70)), "musl");
        assert_eq!(wait(PRIVATE | LOCK_PI, 0, &[(ADDRESS, 0x8000_0046)]), (Lock, Some(70)));
        assert_eq!(wait(9 | CLOCK_REALTIME, 71, &[]), (Thread, Some(71)), "the end of a thread");
        assert_eq!(wait(bitset, 71, &[]), (OtherThread, None), "a counter that has the value of a thread");
        assert_eq!(wait(PRIVATE | WAIT_REQUEUE_PI, 5, &[]), (Condition, None));
        assert_eq!(wait(private, 0, &[]), (OtherThread, None));
    }

    #[test]
    fn functions_tell_what_the_word_does_not() {
        use WaitKind::{Barrier, Condition, Lock, OtherThread, Thread};
        let code = |name: &&str| CodeName { function: Some((*name).to_owned()), ..CodeName::default() };
        let kind = |kind, names: &[&str]| by_code(kind, &names.iter().map(code).collect::<Vec<_>>());
        assert_eq!(kind(OtherThread, &["futex_wait", "pthread_cond_wait", "take"]), (Condition, None));
        assert_eq!(kind(OtherThread, &["gomp_team_barrier_wait_end", "main"]), (Barrier, None));
        assert_eq!(kind(Thread, &["pthread_barrier_wait"]), (Thread, None), "the word has told");
        assert_eq!(kind(OtherThread, &["f", "main"]), (OtherThread, None));
        let python = kind(OtherThread, &["pthread_cond_timedwait", "take_gil", "eval"]);
        assert_eq!(python, (Lock, Some(GIL)));
        let team = CodeName { module: "libgomp.so.1.0.0".to_owned(), ..CodeName::default() };
        assert_eq!(by_code(OtherThread, &[team]), (Barrier, None), "its functions have no names");
    }
}
