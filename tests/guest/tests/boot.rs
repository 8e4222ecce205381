//! Real boots: what comes back from a guest, and that nothing is a pass by accident.
#![allow(clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Parts, Shape, Status, or_skipped};
use std::fs;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, SystemTime};

/// All 256 bytes, so that nothing on the way takes one of them for an order.
const ALL_BYTES: &str = "for n in $(seq 0 255); do printf \"\\\\$(printf %03o $n)\"; done";

/// What was streamed of the boot that most tests share.
static STREAMED: LazyLock<[Collected; 2]> = LazyLock::new(Default::default);

static PLAIN: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let streams = STREAMED.each_ref().map(|stream| -> Box<dyn Write + Send> { Box::new(stream.clone()) });
    Guest::new(Shape::named("two")?)
        .env("COLOUR", "dark green")
        .file(fs::canonicalize("tests").unwrap_or_default().as_path(), "/root/taken along")
        .step("seven", &["sh", "-c", "echo before; echo to the other >&2; exit 7"])
        .step("killed", &["sh", "-c", "kill -SEGV $$"])
        .step("137", &["sh", "-c", "exit 137"])
        .step("missing", &["no-such-program"])
        .step("folder", &["/etc"])
        .step("files", &["sh", "-c", "mkdir -p 'a b'; pwd >'a b/c'; ln -s 'a b/c' link; date +%s"])
        .step("words", &["printf", "[%s]", "", "two words", "$HOME *", "\"quoted\"\n"])
        .step("environment", &["env"])
        .step("terminal", &["sh", "-c", "test -t 0 || test -t 1 || test -t 2"])
        .step("taken along", &["cat", "/root/taken along/boot.rs"])
        .step("mounts", &["sh", "-c", "ls /sys/kernel/tracing/events /sys/kernel/debug /sys/fs/cgroup"])
        .step("left behind", &["sh", "-c", "sleep 1000 & echo $!"])
        .step("uptime", &["cut", "-d.", "-f1", "/proc/uptime"])
        .step("first", &["sh", "-c", &format!("{ALL_BYTES}; echo one >&2; seq 1 3000")])
        .step("second", &["sh", "-c", "echo two >&2; echo end; sleep 1000 & exit 3"])
        .stream_to(streams)
        .boot()
});

#[test]
fn statuses_come_back() {
    let Some(boot) = or_skipped(&PLAIN) else { return };
    use Status::{Exit, Signal};
    let statuses = ["seven", "killed", "137", "missing", "folder", "files"].map(|name| boot[name].status);
    assert_eq!(statuses, [Exit(7), Signal(11), Exit(137), Exit(127), Exit(126), Exit(0)]);
    assert_eq!(boot["missing"].errors(), "no-such-program: No such file or directory\n");
}

#[test]
fn the_two_outputs_are_kept_apart() {
    let Some(boot) = or_skipped(&PLAIN) else { return };
    assert_eq!(
        (boot["seven"].text().as_str(), boot["seven"].errors().as_str()),
        ("before\n", "to the other\n")
    );
}

#[test]
fn files_come_back_and_nothing_of_ours_is_among_them() {
    let Some(boot) = or_skipped(&PLAIN) else { return };
    assert_eq!(fs::read_to_string(boot.out.join("link")).unwrap(), "/out\n");
    let mut names: Vec<_> =
        fs::read_dir(&boot.out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a b", "link"]);
}

#[test]
fn words_and_environment_arrive_unchanged() {
    let Some(boot) = or_skipped(&PLAIN) else { return };
    assert_eq!(boot["words"].succeeded(), "[][two words][$HOME *][\"quoted\"\n]");
    let environment = boot["environment"].succeeded();
    for pair in ["COLOUR=dark green", "HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"] {
        assert!(environment.lines().any(|line| line == pair), "{environment}");
    }
}

#[test]
fn a_step_finds_what_it_needs() {
    let Some(boot) = or_skipped(&PLAIN) else { return };
    assert_eq!(boot["terminal"].status, Status::Exit(1), "it must not see a terminal");
    assert_eq!(boot["taken along"].succeeded(), include_str!("boot.rs"));
    let mounts = boot["mounts"].succeeded();
    assert!(["sched", "block", "cgroup.procs"].iter().all(|name| mounts.contains(name)), "{mounts}");
}

#[test]
fn the_guest_has_the_time_of_this_machine() {
    let Some(boot) = or_skipped(&PLAIN) else { return };
    let seconds: u64 = boot["files"].succeeded().trim().parse().unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(seconds) < 3600, "{seconds} there, {now} here");
}

#[test]
fn a_second_of_the_guest_is_no_shorter_than_one_here() {
    let Some(boot) = or_skipped(&PLAIN) else { return };
    let seconds: u64 = boot["uptime"].succeeded().trim().parse().unwrap();
    assert!(Duration::from_secs(seconds) < boot.total_time, "{seconds} s there, {:?} here", boot.total_time);
}

/// Something that collects what is streamed.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<u8>>>);

impl Write for Collected {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn output_is_streamed_byte_by_byte() {
    let Some(boot) = or_skipped(&PLAIN) else { return };
    let [out, errors] = &*STREAMED;
    let mut expected: Vec<u8> = (0..=255).collect();
    expected.extend((1..=3000).flat_map(|n| format!("{n}\n").into_bytes()));
    assert!(boot["first"].stdout == expected);
    expected.extend(b"end\n");
    assert!(out.0.lock().unwrap().ends_with(&expected));
    assert!(out.0.lock().unwrap().starts_with(b"before\n"));
    assert!(errors.0.lock().unwrap().starts_with(b"to the other\n"));
    assert!(errors.0.lock().unwrap().ends_with(b"one\ntwo\n"));
    assert_eq!(boot["second"].status, Status::Exit(3));
}

/// The failure that these commands must end in; none where there are no guests.
fn failure(script: &str, timeout: Duration) -> Option<Failure> {
    let shape = Shape::named("two").unwrap();
    let guest = Guest::new(shape).step("first", &["true"]).step("the bad one", &["sh", "-c", script]);
    let result = guest.timeout(timeout).boot();
    if let Err(Failure::Unavailable { .. }) = &result {
        or_skipped(&result);
        return None;
    }
    Some(result.unwrap_err())
}

const LONG: Duration = Duration::from_secs(120);

#[test]
fn a_hang_is_a_hang() {
    // A guest starts in 6 s, and in 15 s on a busy host: it is to hang in its step.
    let Some(failure) = failure("sleep 1000", Duration::from_secs(30)) else { return };
    assert!(matches!(failure, Failure::Hang { .. }), "{failure}");
    let message = failure.to_string();
    assert!(message.starts_with("the guest hangs: not over after "), "{message}");
    assert!(message.contains(", in step 'the bad one'"), "{message}");
}

#[test]
fn a_panic_is_a_panic() {
    let Some(failure) = failure("echo c >/proc/sysrq-trigger", LONG) else { return };
    assert!(matches!(failure, Failure::Panic { .. }), "{failure}");
    let message = failure.to_string();
    assert!(message.starts_with("the guest's kernel failed, in step 'the bad one': "), "{message}");
    assert!(message.contains("Kernel panic - not syncing: sysrq triggered crash"), "{message}");
}

#[test]
fn a_machine_that_is_switched_off_too_early_is_no_pass() {
    let Some(failure) = failure("sync; poweroff -f", LONG) else { return };
    let message = failure.to_string();
    assert!(message.starts_with("the guest ended too early, in step 'the bad one'"), "{message}");
}

#[test]
fn exhausted_memory_is_told_even_if_the_step_succeeds() {
    let Some(failure) = failure("tail /dev/zero; true", LONG) else { return };
    assert!(matches!(failure, Failure::OutOfMemory { .. }), "{failure}");
    let message = failure.to_string();
    let expected = "the guest ran out of memory, in step 'the bad one': ";
    assert!(message.starts_with(expected) && message.contains("Killed process"), "{message}");
}

#[test]
fn memory_may_be_exhausted_on_purpose() {
    let shape = Shape::named("two").unwrap();
    let guest = Guest::new(shape).memory_mib(128).memory_may_end();
    let result = guest.step("exhaust", &["tail", "/dev/zero"]).step("after", &["echo", "fine"]).boot();
    let Some(boot) = or_skipped(&result) else { return };
    assert_eq!(boot["exhaust"].status, Status::Signal(9));
    assert_eq!(boot["after"].succeeded(), "fine\n");
}

#[test]
fn two_steps_of_one_name_are_refused() {
    let shape = Shape::named("two").unwrap();
    let failure = Guest::new(shape).step("a", &["true"]).step("a", &["true"]).boot().unwrap_err();
    assert_eq!(failure.to_string(), "two steps are called 'a'");
}

fn guest_of(script: &str) -> Result<Guest, Failure> {
    let set = "echo $WORD >here; echo never >/sys/kernel/mm/transparent_hugepage/enabled; sleep 1000 & cat /dev/shm/*";
    let guest = Guest::new(Shape::named("two")?).step("same", &["sh", "-c", set]);
    Ok(guest.env("WORD", script).step("other", &["sh", "-c", script]))
}

static PARTS: Parts = Parts::whole(&[
    ("first", || guest_of("echo hidden >/dev/shm/file; mkdir /sys/fs/cgroup/new")),
    ("second", || {
        guest_of("cat /sys/kernel/mm/transparent_hugepage/enabled; ls /dev/shm; pidof sleep | wc -w")
    }),
    ("bad", || guest_of("echo c >/proc/sysrq-trigger")),
    ("late", || guest_of("true")),
]);

#[test]
fn parts_of_a_boot_do_not_see_each_other_and_outlive_the_end_of_a_later_one() {
    let Some(first) = PARTS.part("first") else { return };
    first["other"].succeeded();
    let second = PARTS.part("second").unwrap();
    assert_eq!(second["other"].succeeded(), "always madvise [never]\n1\n");
    assert!(second["same"].errors().contains("No such file"), "{}", second["same"].errors());
    assert!(fs::read_to_string(first.out.join("here")).unwrap().starts_with("echo hidden"));
    assert!(second.has("other") && !second.has("another"));
    for (name, reason) in [("bad", "in step 'bad/other'"), ("late", "in step 'bad/other'")] {
        let message = std::panic::catch_unwind(|| PARTS.part(name)).unwrap_err();
        let message = message.downcast_ref::<String>().unwrap();
        assert!(message.contains(reason) && message.contains("sysrq triggered crash"), "{message}");
    }
}
