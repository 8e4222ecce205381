//! The program as a user may start it, who should not.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

#[test]
fn it_says_its_version_and_who_starts_it() {
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_numa-drivers"));
        command.args(words).stdin(Stdio::null()).output().unwrap()
    };
    let version = run(&["--version"]);
    assert_eq!(
        String::from_utf8(version.stdout).unwrap(),
        concat!("numa-drivers ", env!("CARGO_PKG_VERSION"), "\n")
    );
    let other = run(&["--help"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8(other.stderr).unwrap().contains("'numa push'"));
    let nothing = run(&[]);
    assert_eq!((nothing.status.code(), nothing.stdout), (Some(0), Vec::new()), "nothing is asked");
}
