//! Programs that are started, reaped and ended with all that they start.
#![allow(clippy::unwrap_used)]

use numakit_sys::children::{ChildEnd, ChildStart, ChildWait, Children};
use numakit_sys::file::create_in_memory;
use numakit_sys::signal;
use std::ffi::OsString;
use std::io::{Read, Seek};
use std::time::{Duration, Instant};

// One test in a process of its own, since it reaps and ends all children.
#[test]
fn programs_are_reaped_with_what_they_leave() {
    let mut children = Children::adopt().unwrap();
    let (mut output, errors) = (create_in_memory().unwrap(), create_in_memory().unwrap());
    let start = |children: &mut Children, script: &str| {
        let words: Vec<OsString> = ["sh", "-c", script].iter().map(OsString::from).collect();
        let variables = [("GIVEN".into(), "7".into())];
        let start = ChildStart {
            words: &words,
            variables: &variables,
            input: None,
            output: &output,
            errors: &errors,
            notice: None,
        };
        children.start(&start).unwrap()
    };
    let child = start(&mut children, "cat; echo out; cat /dev/tty; exit $GIVEN");
    assert_eq!(children.wait(child, None, None).unwrap(), ChildWait::Ended(ChildEnd::Exited(7)));
    let hung = start(&mut children, "trap '' TERM; sleep 600 & sleep 600");
    let soon = Instant::now() + Duration::from_millis(50);
    assert_eq!(children.wait(hung, None, Some(soon)).unwrap(), ChildWait::TimeUp);
    // A daemon, and a program that stays.
    let daemon = start(&mut children, "setsid sleep 600 & exit 3");
    assert_eq!(children.wait(daemon, None, None).unwrap(), ChildWait::Ended(ChildEnd::Exited(3)));
    let kept = start(&mut children, "sleep 600");
    assert!(children.left(&[kept]).unwrap().len() >= 2);
    assert_eq!(children.end_all(&[kept], Duration::from_millis(100)).unwrap(), Vec::<u32>::new());
    assert_eq!(children.ended(hung).unwrap(), Some(ChildEnd::Killed(signal::KILL)));
    assert_eq!(children.ended(kept).unwrap(), None);
    assert_eq!(children.end_all(&[], Duration::from_secs(60)).unwrap(), Vec::<u32>::new());
    assert_eq!(children.ended(kept).unwrap(), Some(ChildEnd::Killed(signal::TERMINATE)));
    // What a kept program starts at any time is a part of it.
    let busy = start(&mut children, "while :; do /bin/true; done");
    for _ in 0..200 {
        assert_eq!(children.left(&[busy]).unwrap(), Vec::<u32>::new());
    }
    assert_eq!(children.end_all(&[], Duration::from_secs(60)).unwrap(), Vec::<u32>::new());
    output.rewind().unwrap();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!(text, "out\n");
}
