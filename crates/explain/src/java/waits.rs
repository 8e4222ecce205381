//! From dumps of threads to what they wait for: the part of a thread's waits that each object has, and who has it meanwhile.

use super::dump::{JavaThread, JavaWait, JavaWaitKind};
use crate::code::CodeName;
use crate::waits::{LockHolder, WaitKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Objects and call chains that are kept; of a lock, the holders that are named.
const MAX_OBJECTS: usize = 1024;
const MAX_CHAINS: usize = 4096;
const MAX_HOLDERS: usize = 4;
/// Classes in whose methods threads wait for all others.
const WAITING: [&str; 7] = [
    "java.lang.Object.wait",
    "java.lang.Thread.sleep",
    "jdk.internal.misc.Unsafe.",
    "sun.misc.Unsafe.",
    "java.util.concurrent.locks.",
    "java.util.concurrent.ForkJoinPool.managedBlock",
    "java.util.concurrent.ForkJoinPool.unmanagedBlock",
];
/// Classes by which threads wait for permits, by a part of their names.
const PARKING: [(&str, WaitKind); 6] = [
    ("ReentrantLock$", WaitKind::Lock),
    ("ReentrantReadWriteLock$", WaitKind::Lock),
    ("StampedLock", WaitKind::Lock),
    ("Semaphore$", WaitKind::Semaphore),
    ("CountDownLatch$", WaitKind::Barrier),
    ("Phaser", WaitKind::Barrier),
];
/// Classes within those, of which nobody speaks.
const INNER: [&str; 3] = ["$NonfairSync", "$FairSync", "$Sync"];

/// What threads wait for: objects of one class, in one way. A moving collector gives objects new addresses, so that two dumps do
/// not tell which object is which.
#[derive(Debug)]
struct WaitedObject {
    kind: JavaWaitKind,
    class: String,
    /// The maximum of different objects in one dump.
    most: usize,
    holders: BTreeMap<u32, SeenHolder>,
}

/// A thread that had a monitor while others waited for it.
#[derive(Debug)]
struct SeenHolder {
    name: String,
    dumps: u32,
    ran: u32,
    chain: Vec<CodeName>,
}

/// A wait: the place of the object, and that of the call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JavaPlace {
    /// Of the object.
    pub object: usize,
    chain: usize,
}

/// All that dumps of one machine say.
#[derive(Debug, Default)]
pub struct JavaWaits {
    /// Their number.
    pub dumps: u32,
    objects: Vec<WaitedObject>,
    chains: Vec<Vec<CodeName>>,
    threads: HashMap<u32, BTreeMap<JavaPlace, u32>>,
}

impl JavaWaits {
    /// Adds a dump. `host` has the numbers of threads here, if they are others there. Returns whether any thread waits for a lock.
    pub fn note(&mut self, dump: &[JavaThread], host: &HashMap<u32, u32>) -> bool {
        self.dumps += 1;
        let number = |thread: &JavaThread| host.get(&thread.number).copied().unwrap_or(thread.number);
        let mut waited: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for thread in dump {
            let Some(wait) = &thread.wait else { continue };
            let Some(object) = self.object(wait) else { continue };
            waited.entry(object).or_default().insert(wait.address);
            let chain = self.chain(told(&thread.frames));
            *self
                .threads
                .entry(number(thread))
                .or_default()
                .entry(JavaPlace { object, chain })
                .or_default() += 1;
        }
        let mut is_locked = false;
        for (place, addresses) in waited {
            let Some(object) = self.objects.get_mut(place) else { continue };
            is_locked |= kind(object.kind, &object.class) == WaitKind::Lock;
            object.most = object.most.max(addresses.len());
            if object.kind == JavaWaitKind::Enter {
                let holds = |thread: &&JavaThread| thread.held.iter().any(|held| addresses.contains(held));
                dump.iter().filter(holds).for_each(|thread| object.held_by(thread, number(thread)));
            }
        }
        is_locked
    }

    fn object(&mut self, wait: &JavaWait) -> Option<usize> {
        let is_it = |known: &WaitedObject| (known.kind, &known.class) == (wait.kind, &wait.class);
        if let Some(place) = self.objects.iter().position(is_it) {
            return Some(place);
        }
        let (kind, class) = (wait.kind, wait.class.clone());
        let is_room = self.objects.len() < MAX_OBJECTS;
        is_room.then(|| self.objects.push(WaitedObject { kind, class, most: 0, holders: BTreeMap::new() }));
        is_room.then(|| self.objects.len() - 1)
    }

    /// The place of a chain. Those for which there is no room are called like the last one that has some.
    fn chain(&mut self, chain: &[CodeName]) -> usize {
        if let Some(place) = self.chains.iter().position(|known| known == chain) {
            return place;
        }
        if self.chains.len() < MAX_CHAINS {
            self.chains.push(chain.to_vec());
        }
        self.chains.len() - 1
    }

    /// The waits in which a thread was seen, with how often.
    pub fn of_thread(&self, thread: u32) -> impl Iterator<Item = (JavaPlace, u32)> {
        self.threads.get(&thread).into_iter().flatten().map(|(place, count)| (*place, *count))
    }

    /// The only monitor for which any thread waits, where most do so; `None` if there are several.
    pub fn only_monitor(&self) -> Option<JavaPlace> {
        let is_monitor = |place: &JavaPlace| {
            self.objects.get(place.object).is_some_and(|object| object.kind == JavaWaitKind::Enter)
        };
        let mut counts: BTreeMap<JavaPlace, u32> = BTreeMap::new();
        for (place, count) in self.threads.values().flatten().filter(|(place, _)| is_monitor(place)) {
            *counts.entry(*place).or_default() += count;
        }
        let (most, _) = counts.iter().max_by_key(|(_, count)| **count)?;
        counts.keys().all(|place| place.object == most.object).then_some(*most)
    }

    /// What kind of wait the one for an object is, and what the object is.
    pub fn named(&self, place: JavaPlace) -> (WaitKind, Option<String>) {
        let Some(object) = self.objects.get(place.object) else { return (WaitKind::OtherThread, None) };
        let what = (object.kind != JavaWaitKind::Sleep).then(|| object.words());
        (kind(object.kind, &object.class), what)
    }

    /// The methods of a wait, innermost first, from the one on that wants what it waits for.
    pub fn methods(&self, place: JavaPlace) -> Vec<CodeName> {
        self.chains.get(place.chain).cloned().unwrap_or_default()
    }

    /// Who had an object while others waited for it; the thread that had it most comes first.
    pub fn holders(&self, object: usize) -> Vec<LockHolder> {
        let Some(object) = self.objects.get(object) else { return Vec::new() };
        let all: u32 = object.holders.values().map(|holder| holder.dumps).sum();
        let mut holders: Vec<LockHolder> = object
            .holders
            .iter()
            .map(|(thread, seen)| LockHolder {
                thread: *thread,
                name: seen.name.clone(),
                share: f64::from(seen.dumps) / f64::from(all.max(1)),
                runs: seen.ran * 2 >= seen.dumps,
                chain: seen.chain.clone(),
            })
            .collect();
        holders.sort_by(|a, b| b.share.total_cmp(&a.share));
        holders.truncate(MAX_HOLDERS);
        holders
    }
}

impl WaitedObject {
    fn held_by(&mut self, thread: &JavaThread, number: u32) {
        let holder = self.holders.entry(number).or_insert_with(|| SeenHolder {
            name: thread.name.clone(),
            dumps: 0,
            ran: 0,
            chain: thread.frames.clone(),
        });
        holder.dumps += 1;
        holder.ran += u32::from(thread.runs);
    }

    fn words(&self) -> String {
        let class = INNER.iter().find_map(|inner| self.class.strip_suffix(inner)).unwrap_or(&self.class);
        let what = match (self.kind, kind(self.kind, &self.class)) {
            (JavaWaitKind::Enter, _) => "Java monitor",
            (JavaWaitKind::Park, WaitKind::Lock) => "Java lock",
            _ => "Java object",
        };
        let count = if self.most > 1 { format!(" ({} of them)", self.most) } else { String::new() };
        format!("{what} of class {class}{count}")
    }
}

/// What threads wait for so.
fn kind(kind: JavaWaitKind, class: &str) -> WaitKind {
    match kind {
        JavaWaitKind::Enter => WaitKind::Lock,
        JavaWaitKind::Notify => WaitKind::Condition,
        JavaWaitKind::Sleep => WaitKind::Timer,
        JavaWaitKind::Park => {
            let known = PARKING.iter().find(|(part, _)| class.contains(part));
            known.map_or(WaitKind::Condition, |(_, kind)| *kind)
        }
    }
}

/// The chain from the method on that wants what the thread waits for.
fn told(frames: &[CodeName]) -> &[CodeName] {
    let is_waiting = |code: &CodeName| {
        let function = code.function.as_deref().unwrap_or_default();
        WAITING.iter().any(|start| function.starts_with(start))
    };
    let begin = frames.iter().position(|code| !is_waiting(code)).unwrap_or(0);
    frames.get(begin..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::java::dump;

    /// Two threads wait for a monitor that a third has, a fourth for a lock.
    fn dump(holder: u32, address: u32) -> Vec<JavaThread> {
        dump::threads(&format!(
            "\"t{holder}\" nid={holder} runnable\n   java.lang.Thread.State: RUNNABLE\n\tat M.work(M.java:6)\n\tat \
             M.add(M.java:7)\n\t- locked <0x{address:x}> (a M$Account)\n\n\"u\" nid=50 x\n   java.lang.Thread.State: BLOCKED (on object \
             monitor)\n\tat M.add(M.java:7)\n\t- waiting to lock <0x{address:x}> (a M$Account)\n\n\"v\" nid=51 x\n\tat \
             M.add(M.java:7)\n\t- waiting to lock <0x{address:x}> (a M$Account)\n\n\"w\" nid=52 x\n\tat \
             jdk.internal.misc.Unsafe.park(java.base@17/Native Method)\n\t- parking to wait for  <0x99> (a \
             java.util.concurrent.locks.ReentrantLock$NonfairSync)\n\tat \
             java.util.concurrent.locks.ReentrantLock.lock(x/y.java:1)\n\tat L.take(L.java:3)\n"
        ))
    }

    fn functions(chain: &[CodeName]) -> Vec<&str> {
        chain.iter().filter_map(|code| code.function.as_deref()).collect()
    }

    #[test]
    fn a_monitor_has_its_class_its_waiters_and_its_holders() {
        let mut waits = JavaWaits::default();
        for holder in [40, 41, 40, 40] {
            // The collector moves the object.
            assert!(waits.note(&dump(holder, 0x1000 + holder), &HashMap::new()));
        }
        let seen: Vec<(JavaPlace, u32)> = waits.of_thread(50).collect();
        assert_eq!((seen.len(), seen[0].1, waits.of_thread(40).count()), (1, 4, 0));
        let place = seen[0].0;
        assert_eq!(waits.named(place), (WaitKind::Lock, Some("Java monitor of class M$Account".to_owned())));
        assert_eq!(functions(&waits.methods(place)), ["M.add"]);
        assert_eq!(waits.only_monitor(), Some(place), "the lock is no monitor");
        let holders = waits.holders(place.object);
        assert_eq!((holders.len(), holders[0].thread, holders[0].name.as_str()), (2, 40, "t40"));
        assert!(holders[0].runs && holders[0].share == 0.75);
        assert_eq!(functions(&holders[0].chain), ["M.work", "M.add"]);
        let lock = waits.of_thread(52).next().unwrap().0;
        let words = "Java lock of class java.util.concurrent.locks.ReentrantLock";
        assert_eq!(waits.named(lock), (WaitKind::Lock, Some(words.to_owned())));
        assert_eq!(functions(&waits.methods(lock)), ["L.take"]);
        assert!(waits.holders(lock.object).is_empty(), "the dump does not tell it");
    }

    #[test]
    fn numbers_of_threads_are_those_of_this_side() {
        let mut waits = JavaWaits::default();
        waits.note(&dump(40, 1), &HashMap::from([(40, 4040), (50, 4050)]));
        let place = waits.of_thread(4050).next().unwrap().0;
        assert_eq!((waits.of_thread(50).count(), waits.holders(place.object)[0].thread), (0, 4040));
    }

    #[test]
    fn several_objects_of_a_class_are_counted() {
        let mut waits = JavaWaits::default();
        let mut both = dump(40, 1);
        both.extend(dump(41, 2));
        waits.note(&both, &HashMap::new());
        let place = waits.of_thread(50).next().unwrap().0;
        assert_eq!(waits.named(place).1.unwrap(), "Java monitor of class M$Account (2 of them)");
        let other = "\"x\" nid=60 x\n\tat B.f(B.java:1)\n\t- waiting to lock <0x9> (a B)\n";
        waits.note(&dump::threads(other), &HashMap::new());
        assert_eq!(waits.only_monitor(), None);
    }

    #[test]
    fn a_thread_that_sleeps_waits_for_the_time() {
        let text = "\"tick\" nid=1 x\n   java.lang.Thread.State: TIMED_WAITING (sleeping)\n\tat java.lang.Thread.sleep(Native \
                    Method)\n\tat Clock.tick(Clock.java:1)\n";
        let mut waits = JavaWaits::default();
        assert!(!waits.note(&dump::threads(text), &HashMap::new()));
        let place = waits.of_thread(1).next().unwrap().0;
        assert_eq!(waits.named(place), (WaitKind::Timer, None));
        assert_eq!(functions(&waits.methods(place)), ["Clock.tick"]);
    }

    #[test]
    fn threads_without_work_wait_for_no_lock() {
        let text = "\"idle\" nid=1 x\n\tat jdk.internal.misc.Unsafe.park(Native Method)\n\t- parking to wait for  <0x1> (a \
                    java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject)\n\tat \
                    java.util.concurrent.LinkedBlockingQueue.take(x.java:1)\n";
        let mut waits = JavaWaits::default();
        assert!(!waits.note(&dump::threads(text), &HashMap::new()));
        let place = waits.of_thread(1).next().unwrap().0;
        assert_eq!(waits.named(place).0, WaitKind::Condition);
        assert_eq!(functions(&waits.methods(place)), ["java.util.concurrent.LinkedBlockingQueue.take"]);
    }
}
