//! Programs that numa places on a real Linux on four nodes.

use numakit_guest::{Failure, Guest, Part, Shape, programs};
use std::collections::BTreeSet;
use std::time::Duration;

pub fn guest() -> Result<Guest, Failure> {
    // The second looks for its cores while the first runs; a program waits until both do.
    let pair = "one() { numa run -c 3 --busy off -- sh -c 'touch here-$$; until [ -e go ]; do usleep 50000; done; \
        exec affinity stacks'; }; \
        one >first & one >second & until [ -n \"$(ls here-* 2>/dev/null | sed -n 2p)\" ]; do usleep 50000; done; \
        numa run -c 3 true; echo refused $?; touch go; wait";
    let moved = "firsttouch 3 40 0 bind --hold 600 >held & until grep -q pages_on_node held; do usleep 50000; done; \
        pid=$(sed -n 's/^pid //p' held); numa run --nodes 2 -c 2 --pid $pid; numa top --once -p $pid; kill $pid; wait";
    let maps = |memory: &str| {
        format!("numa run -c 4 --memory {memory} -- sh -c 'cat /proc/self/numa_maps' | grep heap")
    };
    let shell = |text: &str| ["sh".to_owned(), "-c".to_owned(), text.to_owned()];
    let mut guest = Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(420))
        .program(&programs::numa()?)
        .program(&programs::compiled("firsttouch")?.unwrap())
        .program(&programs::compiled("affinity")?.unwrap())
        .env("OMP_WAIT_POLICY", "passive")
        .env("GOMP_SPINCOUNT", "0");
    for (name, text) in [
        ("small", "echo never >/sys/kernel/mm/transparent_hugepage/enabled"),
        ("nproc", "numa run -c 6 -- nproc; numa run -c 6 -- sh -c 'nproc; nproc'"),
        ("openmp", "numa run -c 6 -- affinity openmp"),
        ("stacks", "numa run -c 6 -- affinity stacks"),
        ("scatter", "numa run -c 4 --policy scatter -- affinity stacks"),
        ("pair", pair),
        ("moved", moved),
        ("bind", &maps("bind:2")),
        ("interleave", &maps("interleave:1-2")),
        ("prefer", &maps("prefer:3")),
        ("local", &maps("local")),
        ("weighted", "numa run -c 1 --memory weighted -- true; echo status $?"),
        ("madvise", "numa run -c 1 --thp madvise -- true; echo status $?"),
        (
            "static",
            "numa run --nodes 1 -c 2 --memory bind:1 -- busybox grep -E 'heap|stack' /proc/self/numa_maps",
        ),
        ("ps", "numa run -c 2 -- numa run -c 2 --share -- nproc"),
    ] {
        let words = shell(text);
        guest = guest.step(name, &words.each_ref().map(String::as_str));
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::PARTS.part("runs")
}

/// One line of the program `affinity`.
#[derive(Debug)]
struct Thread {
    cpus: String,
    here: u64,
    elsewhere: u64,
}

fn threads(printed: &str) -> Vec<Thread> {
    let one = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let after = |name: &str| Some(words[words.iter().position(|word| *word == name)? + 1]);
        let number = |name: &str| after(name).map_or(0, |word| word.parse().unwrap());
        Some(Thread { cpus: after("cpus")?.to_owned(), here: number("here"), elsewhere: number("elsewhere") })
    };
    printed.lines().filter(|line| line.starts_with("rank ")).filter_map(one).collect()
}

fn cpus(threads: &[Thread]) -> Vec<&str> {
    threads.iter().map(|thread| thread.cpus.as_str()).collect()
}

/// Stacks and thread-local memory are beside their threads but for one page in a hundred.
fn are_local(threads: &[Thread]) {
    for thread in threads {
        let all = thread.here + thread.elsewhere;
        assert!(all > 0 && thread.elsewhere * 100 <= all, "{threads:?}");
    }
}

#[test]
fn the_count_of_cpus_and_of_threads_is_that_of_the_cores() {
    let Some(boot) = part() else { return };
    assert_eq!(boot["nproc"].succeeded(), "6\n6\n6\n");
    let six = threads(&boot["openmp"].succeeded());
    assert_eq!(cpus(&six), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(boot["ps"].succeeded(), "2\n");
}

#[test]
fn stacks_and_thread_local_memory_are_beside_their_threads() {
    let Some(boot) = part() else { return };
    let six = threads(&boot["stacks"].succeeded());
    assert_eq!(six.len(), 6);
    are_local(&six);
    let far = threads(&boot["scatter"].succeeded());
    let nodes: BTreeSet<u32> = cpus(&far).iter().map(|cpu| cpu.parse::<u32>().unwrap() / 2).collect();
    assert_eq!(nodes.len(), 4, "{far:?}");
    are_local(&far);
}

#[test]
fn two_at_once_are_on_cores_of_their_own() {
    let Some(boot) = part() else { return };
    let told = boot["pair"].succeeded();
    assert!(told.contains("refused 2"), "{told}");
    let errors = boot["pair"].errors();
    assert!(
        errors.contains("but 2 of this machine's 8 are free") && errors.contains("sh of root"),
        "{errors}"
    );
    let read = |name: &str| threads(&std::fs::read_to_string(boot.out.join(name)).unwrap());
    let (first, second) = (read("first"), read("second"));
    let all: BTreeSet<&str> = cpus(&first).into_iter().chain(cpus(&second)).collect();
    assert_eq!((first.len(), second.len(), all.len()), (3, 3, 6), "{first:?} {second:?}");
    // Nearest nodes: each is on one board.
    for threads in [&first, &second] {
        let boards: BTreeSet<u32> = cpus(threads).iter().map(|cpu| cpu.parse::<u32>().unwrap() / 4).collect();
        assert_eq!(boards.len(), 1, "{threads:?}");
        are_local(threads);
    }
}

#[test]
fn a_process_that_runs_moves_with_its_memory() {
    let Some(boot) = part() else { return };
    let told = boot["moved"].text();
    println!("{told}{}", boot["moved"].errors());
    assert!(told.contains(": CPU 4\n") && told.contains("moved to nodes 2"), "{told}");
    let total = told.lines().find(|line| line.trim_start().starts_with("Total")).unwrap();
    let mib: Vec<f64> = total.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // 40 MiB that were bound to node 3; what others map too stays.
    assert!(mib[2] > 40.0 && mib[3] < 1.0, "{total}");
}

#[test]
fn memory_comes_from_where_it_was_asked_for() {
    let Some(boot) = part() else { return };
    for (step, policy) in [
        ("bind", " bind:2 "),
        ("interleave", " interleave:1-2 "),
        ("prefer", " prefer:3 "),
        ("local", " default "),
    ] {
        let heap = boot[step].succeeded();
        let modern = policy.replacen(":", "=static:", 1);
        assert!(heap.contains(policy) || heap.contains(&modern), "{step}: {heap}");
    }
    let heap = boot["bind"].text();
    assert!(heap.contains(" N2=") && !heap.contains(" N0="), "{heap}");
    // Programs without the library have the policy from their first instruction on.
    let fixed = boot["static"].succeeded();
    assert!(fixed.contains(" bind:1 ") && fixed.contains(" N1="), "{fixed}");
    assert!(boot["static"].errors().contains("busybox is statically linked"), "{}", boot["static"].errors());
}

#[test]
fn what_this_kernel_does_not_know_is_refused_with_the_reason() {
    let Some(boot) = part() else { return };
    for (step, reason) in [("weighted", "it needs Linux 6.9"), ("madvise", "use Linux 6.18 or later")] {
        assert_eq!(boot[step].text(), "status 2\n");
        assert!(boot[step].errors().contains(reason), "{}", boot[step].errors());
    }
}
