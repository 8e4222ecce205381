use super::*;
use proptest::prelude::*;

/// A dump of JDK 17, shortened.
const DUMP: &str = r#"2026-11-27 14:48:49
Full thread dump OpenJDK 64-Bit Server VM (17.0.21.1+2-1-deb12u1-Debian mixed mode, sharing):

Threads class SMR info:
_java_thread_list=0x00007fb5c40022b0, length=16, elements={
0x00007fb6540f8de0, 0x00007fb6540fa1c0
}

"Finalizer" #3 daemon prio=8 os_prio=0 cpu=0.60ms elapsed=4.98s tid=0x00007fb6540fa1c0 nid=0x732e in Object.wait()  [0x00007fb630603000]
   java.lang.Thread.State: WAITING (on object monitor)
	at java.lang.Object.wait(java.base@17.0.21.1/Native Method)
	- waiting on <0x000000069ec02f40> (a java.lang.ref.ReferenceQueue$Lock)
	at java.lang.ref.ReferenceQueue.remove(java.base@17.0.21.1/ReferenceQueue.java:155)
	- locked <0x000000069ec02f40> (a java.lang.ref.ReferenceQueue$Lock)
	at java.lang.ref.Finalizer$FinalizerThread.run(java.base@17.0.21.1/Finalizer.java:172)

"C2 CompilerThread0" #7 daemon prio=9 os_prio=0 cpu=39.79ms elapsed=4.95s tid=0x00007fb654105d90 nid=0x7332 waiting on condition  [0x0000000000000000]
   java.lang.Thread.State: RUNNABLE
   No compile task

"teller-0" #12 prio=5 os_prio=0 cpu=256.33ms elapsed=4.89s tid=0x00007fb65411dba0 nid=0x7339 runnable  [0x00007fb621bfc000]
   java.lang.Thread.State: RUNNABLE
	at Mon.work(Mon.java:6)
	at Mon.deposit(Mon.java:7)
	- locked <0x000000069ec19af0> (a Mon$Account)
	at Mon$$Lambda$1/0x00007fb5d4000c10.run(Unknown Source)
	at java.lang.Thread.run(java.base@17.0.21.1/Thread.java:840)

"a "quoted" name" #13 [29498] prio=5 os_prio=0 cpu=244.14ms elapsed=4.88s tid=0x00007fb65411e810 nid=29498 waiting for monitor entry  [0x00007fb621afd000]
   java.lang.Thread.State: BLOCKED (on object monitor)
	at Mon.deposit(Mon.java:7)
	- waiting to lock <0x000000069ec19af0> (a Mon$Account)
	at Mon.lambda$main$0(Mon.java:10)

"clerk-1" #14 prio=5 os_prio=0 cpu=1.14ms elapsed=8.57s tid=0x00007febdc11e940 nid=0x7350 waiting on condition  [0x00007febb4050000]
   java.lang.Thread.State: WAITING (parking)
	at jdk.internal.misc.Unsafe.park(java.base@17.0.21.1/Native Method)
	- parking to wait for  <0x000000069ec1a3a8> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)
	at java.util.concurrent.locks.LockSupport.park(java.base@17.0.21.1/LockSupport.java:211)
	at Lk.deposit(Lk.java:6)

"tick" #15 prio=5 os_prio=0 cpu=1.14ms elapsed=8.57s tid=0x00007febdc11e940 nid=0x7351 waiting on condition  [0x00007febb4050000]
   java.lang.Thread.State: TIMED_WAITING (sleeping)
	at java.lang.Thread.sleep(java.base@17.0.21.1/Native Method)
	at Clock.tick(Clock.java:6)

"VM Thread" os_prio=0 cpu=0.73ms elapsed=4.99s tid=0x00007fb6540f4e10 nid=0x732c runnable  

JNI global refs: 4, weak refs: 0
"#;

#[test]
fn threads_have_what_they_wait_for_and_what_they_have() {
    let found = threads(DUMP);
    let names: Vec<&str> = found.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["Finalizer", "teller-0", "a \"quoted\" name", "clerk-1", "tick"]);
    let numbers: Vec<u32> = found.iter().map(|thread| thread.number).collect();
    assert_eq!(numbers, [0x732e, 0x7339, 29498, 0x7350, 0x7351]);
    let waits: Vec<Option<(JavaWaitKind, u64, &str)>> = found
        .iter()
        .map(|thread| thread.wait.as_ref().map(|wait| (wait.kind, wait.address, wait.class.as_str())))
        .collect();
    let queue = (JavaWaitKind::Notify, 0x6_9ec0_2f40, "java.lang.ref.ReferenceQueue$Lock");
    let monitor = (JavaWaitKind::Enter, 0x6_9ec1_9af0, "Mon$Account");
    let lock = (JavaWaitKind::Park, 0x6_9ec1_a3a8, "java.util.concurrent.locks.ReentrantLock$NonfairSync");
    assert_eq!(waits, [Some(queue), None, Some(monitor), Some(lock), Some((JavaWaitKind::Sleep, 0, ""))]);
    assert!(found[0].held.is_empty(), "it waits for a notification");
    assert_eq!(found[1].held, [0x6_9ec1_9af0]);
    assert_eq!(
        found.iter().map(|thread| thread.runs).collect::<Vec<_>>(),
        [false, true, false, false, false]
    );
}

#[test]
fn methods_have_their_files_and_lines() {
    let frames = &threads(DUMP)[1].frames;
    let names: Vec<&str> = frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
    assert_eq!(names, ["Mon.work", "Mon.deposit", "Mon$$Lambda$1.run", "java.lang.Thread.run"]);
    assert_eq!((frames[0].file.as_deref(), frames[0].line), (Some("Mon.java"), Some(6)));
    assert_eq!((frames[2].file.as_deref(), frames[2].line), (None, None));
    assert_eq!((frames[3].file.as_deref(), frames[3].line), (Some("Thread.java"), Some(840)));
}

#[test]
fn names_are_short_and_printable() {
    let long = "x".repeat(1000);
    let text = format!("\"a\x1b[31m{long}\" nid=7 x\n\tat {long}.f(A.java:1)\n");
    let found = threads(&text);
    assert_eq!(found[0].name.chars().count(), MAX_NAME);
    assert!(found[0].name.starts_with("a?[31m"));
    let frames = format!("\"a\" nid=7 x\n{}", "\tat f.f(A.java:1)\n".repeat(10_000));
    assert_eq!(threads(&frames)[0].frames.len(), MAX_FRAMES);
}

proptest! {
    #[test]
    fn any_text_is_parsed(cut in 0..DUMP.len(), text in "\\PC{0,80}") {
        let (start, end) = (DUMP.get(..cut).unwrap_or_default(), DUMP.get(cut..).unwrap_or_default());
        threads(&format!("{start}{text}{end}"));
        threads(&text);
    }
}
