//! What runtimes say about themselves: threads of a Java machine, and names of compiled code.

use numakit_explain::java::dump;
use numakit_explain::perf_map::PerfMap;

/// A dump of threads.
pub fn dump(input: &[u8]) -> bool {
    let found = dump::threads(&String::from_utf8_lossy(input));
    assert!(found.iter().all(|thread| !thread.frames.is_empty()));
    !found.is_empty()
}

/// Lines of names.
pub fn perf_map(input: &[u8]) -> bool {
    let map = PerfMap::parse(&String::from_utf8_lossy(input));
    let known = map.function(0x1000).is_some();
    let mut twice = map.clone();
    twice.add(map);
    assert_eq!(twice.function(0x1000).is_some(), known);
    known
}
