//! `numa top` at a pseudo terminal, by the text of its screen.

use crate::runner::Folder;
use numakit_sys::poll;
use numakit_sys::pty::Pty;
use numakit_testing::{sysfs, until};
use numakit_topology::synthetic;
use std::num::NonZero;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::Duration;

/// `numa` at a terminal.
pub struct AtTerminal {
    pty: Pty,
    child: Child,
    seen: vt100::Parser,
    raw: Vec<u8>,
}

/// The switch to the other screen, and back.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

impl AtTerminal {
    pub fn start(
        folder: &Folder,
        columns: u16,
        rows: u16,
        arguments: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let pty = Pty::open(columns, rows).unwrap();
        let mut command = folder.numa(arguments);
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
        command.envs(variables.iter().copied());
        let child = pty.spawn(&mut command).unwrap();
        Self { pty, child, seen: vt100::Parser::new(cells(rows), cells(columns), 0), raw: Vec::new() }
    }

    /// Reads what was drawn so far.
    fn read(&mut self) {
        let mut buffer = [0; 1 << 16];
        while poll::readable(&[self.pty.as_fd()], Some(Duration::ZERO)).unwrap() == [true] {
            let Ok(count) = self.pty.read(&mut buffer) else { return };
            self.seen.process(&buffer[..count]);
            self.raw.extend_from_slice(&buffer[..count]);
        }
    }

    fn text(&mut self) -> String {
        self.read();
        self.seen.screen().contents()
    }

    /// Waits until the screen has this text.
    pub fn shows(&mut self, text: &str) {
        let mut last = String::new();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until!({
                last = self.text();
                last.contains(text)
            });
        }));
        assert!(found.is_ok(), "'{text}' is not on the screen:\n{last}");
    }

    pub fn press(&self, keys: &str) {
        self.pty.write(keys.as_bytes()).unwrap();
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.seen.screen_mut().set_size(cells(rows), cells(columns));
        self.pty.resize(columns, rows).unwrap();
    }

    fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    /// Waits for the end; the terminal must be as it was.
    pub fn ends(mut self) -> (i32, String) {
        let mut status = None;
        until!({
            self.read();
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.read();
        let raw = self.raw();
        assert_eq!(raw.matches(ENTER).count(), raw.matches(LEAVE).count(), "{raw:?}");
        assert!(raw.contains("\x1b[?25h") && self.pty.is_cooked().unwrap(), "{raw:?}");
        let status = status.unwrap();
        (status.code().unwrap_or_else(|| 128 + status.signal().unwrap()), raw)
    }
}

fn cells(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

fn generated(folder: &Folder, description: &str) -> String {
    let root = folder.path("machine");
    sysfs::write(&sysfs::tree(&synthetic::parse(description).unwrap()), &root).unwrap();
    root.display().to_string()
}

#[test]
fn findings_nodes_the_map_and_processes_are_on_80_by_24() {
    let folder = Folder::new("top-host");
    let mut top = AtTerminal::start(&folder, 80, 24, "top -i 200ms", &[]);
    top.shows("Verdict");
    top.shows("CPU time");
    top.shows("PID USER");
    let child = top.child.id().to_string();
    top.press("/numa\r");
    top.shows(&format!("{child} "));
    top.press("h");
    top.shows("show or hide this help");
    top.press("q");
    top.shows("Verdict");
    top.press("q");
    assert_eq!(top.ends().0, 0);
}

#[test]
fn every_way_out_gives_the_terminal_back() {
    let folder = Folder::new("top-ends");
    for end in ["q", "\x03", "-TERM", "-INT", "-HUP", "-QUIT", "-USR1", "-ALRM"] {
        let mut top = AtTerminal::start(&folder, 80, 24, "top", &[]);
        top.shows("CPU time");
        if end.starts_with('-') {
            top.signal(end)
        } else {
            top.press(end)
        }
        assert_eq!(top.ends().0, 0, "{end:?}");
    }
}

#[test]
fn it_ends_with_its_terminal() {
    let folder = Folder::new("top-gone");
    for arguments in ["top", "top -- sleep 1000"] {
        let mut top = AtTerminal::start(&folder, 80, 24, arguments, &[]);
        top.shows("CPU time");
        let AtTerminal { pty, mut child, .. } = top;
        drop(pty);
        until!(child.try_wait().unwrap().is_some());
    }
}

#[test]
fn a_stopped_process_gives_the_terminal_back_and_takes_it_again() {
    let folder = Folder::new("top-stops");
    let mut top = AtTerminal::start(&folder, 80, 24, "top", &[]);
    for stop in ["-TSTP", "\x1a"] {
        top.shows("CPU time");
        if stop.starts_with('-') {
            top.signal(stop)
        } else {
            top.press(stop)
        }
        until!(top.state() == 'T');
        top.read();
        assert!(
            top.pty.is_cooked().unwrap() && !top.seen.screen().alternate_screen(),
            "{stop:?} {:?}",
            top.raw()
        );
        top.signal("-CONT");
        until!({
            top.read();
            top.seen.screen().alternate_screen()
        });
    }
    top.shows("CPU time");
    top.press("q");
    assert_eq!(top.ends().0, 0);
}

#[test]
fn the_screen_follows_the_size_of_the_terminal() {
    let folder = Folder::new("top-size");
    let root = generated(&folder, "package:4 node:4 core:4");
    let mut top = AtTerminal::start(&folder, 80, 24, &format!("top --sysroot {root}"), &[]);
    top.shows("more nodes");
    top.resize(200, 50);
    until!(!top.text().contains("more nodes") && top.text().contains("  15 ["));
    top.resize(30, 8);
    top.shows("30x8: too small");
    top.press("q");
    assert_eq!(top.ends().0, 0);
}

#[test]
fn without_colours_and_without_unicode_it_needs_neither() {
    let folder = Folder::new("top-plain");
    let root = generated(&folder, "package:2 node:2 core:4");
    let options = format!("top --sysroot {root} -i 100ms");
    let plain = [("NO_COLOR", "1"), ("LC_ALL", "C")];
    let mut top = AtTerminal::start(&folder, 80, 24, &options, &plain);
    top.shows("Verdict");
    top.shows("p0 n0");
    top.press("q");
    let (code, raw) = top.ends();
    let has_colours =
        |raw: &str| raw.contains("\x1b[38;5;") || raw.contains("\x1b[31") || raw.contains("\x1b[32");
    assert!(code == 0 && raw.is_ascii() && !has_colours(&raw), "{raw:?}");
    let mut top = AtTerminal::start(&folder, 80, 24, &options, &[]);
    top.shows("Verdict");
    top.press("q");
    let (_, raw) = top.ends();
    assert!(has_colours(&raw), "{raw:?}");
}

#[test]
fn a_terminal_without_a_cursor_and_a_pipe_are_refused() {
    let folder = Folder::new("top-dumb");
    let top = AtTerminal::start(&folder, 80, 24, "top", &[("TERM", "dumb")]);
    let mut seen = top;
    let mut status = None;
    until!({
        seen.read();
        status = seen.child.try_wait().unwrap();
        status.is_some()
    });
    seen.read();
    let raw = seen.raw().replace("\r\n", " ");
    assert!(status.unwrap().code() == Some(2) && raw.contains("TERM is 'dumb'"), "{raw}");
    assert!(raw.contains("TERM=xterm numa top") && !raw.contains(ENTER), "{raw}");
    folder.run("top").says(2, "standard output is not a terminal");
}

#[test]
fn a_recording_is_played_stepped_and_searched() {
    let folder = Folder::new("top-replay");
    assert_eq!(folder.run("record -i 10ms -o a.arrows -- sleep 1").code, 0);
    let mut top = AtTerminal::start(&folder, 120, 30, "top --replay a.arrows -i 100ms", &[]);
    top.shows("a.arrows: ");
    top.shows("Verdict");
    top.press(" ");
    top.shows("PAUSED");
    top.press("t0.2s\r");
    top.shows("0.200 s of");
    top.press(".");
    top.shows("0.300 s of");
    top.press(",,");
    top.shows("0.100 s of");
    top.shows("sleep 1");
    top.press("q");
    assert_eq!(top.ends().0, 0);
    folder.run("top --replay none.arrows").says(2, "standard output is not a terminal");
    let mut missing = AtTerminal::start(&folder, 80, 24, "top --replay none.arrows", &[]);
    missing.shows("none.arrows");
    let mut status = None;
    until!({
        status = missing.child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(2));
}

#[test]
fn a_command_is_shown_alone_and_its_output_comes_at_the_end() {
    let folder = Folder::new("top-command");
    let script = folder.path("script.sh");
    std::fs::write(&script, "echo words; sleep 1; exit 3").unwrap();
    let mut top = AtTerminal::start(&folder, 100, 24, "top -i 100ms -- sh script.sh", &[]);
    top.shows("sh");
    top.shows("the command ended with status 3");
    assert!(!top.text().contains("words"));
    top.press("q");
    let (code, raw) = top.ends();
    let after = raw.rsplit_once(LEAVE).unwrap().1;
    assert!(code == 3 && after.contains("words"), "{code} {after:?}");
}

#[test]
fn quitting_ends_the_command() {
    let folder = Folder::new("top-quit");
    let mut top = AtTerminal::start(&folder, 100, 24, "top -i 100ms -- sleep 1000", &[]);
    top.shows("sleep");
    top.press("q");
    assert_eq!(top.ends().0, 130);
}

#[test]
fn answers_change_the_interval_and_the_processes() {
    let folder = Folder::new("top-answers");
    let mut top = AtTerminal::start(&folder, 100, 24, "top -i 500ms --sort pid", &[]);
    top.shows("PID▼");
    top.shows("every 500ms");
    top.press("i5\r");
    top.shows("has no unit");
    top.press("i250ms\r");
    top.shows("every 250ms");
    let pid = top.child.id().to_string();
    top.press("/numa\r");
    top.shows(&format!("{pid} "));
    top.press("p0\r");
    top.shows("there is no process '0'");
    top.press(&format!("p{pid}\r"));
    top.shows(&format!("of {pid}"));
    top.press("r");
    top.shows("PID▲");
    top.press(" ");
    top.shows("PAUSED");
    top.press("q");
    assert_eq!(top.ends().0, 0);
}
