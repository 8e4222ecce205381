//! The text in which a Java virtual machine says what its threads do (`jstack` prints it).

use crate::code::CodeName;

/// Frames of a thread that are kept, and threads. What is longer says no more.
const MAX_FRAMES: usize = 64;
const MAX_THREADS: usize = 100_000;
/// Longer names are cut.
const MAX_NAME: usize = 200;
/// What Java code is called as a module.
const MODULE: &str = "Java";

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JavaWaitKind {
    /// A monitor, which another thread has.
    Enter,
    /// A notification of an object.
    Notify,
    /// A permit, as locks of `java.util.concurrent` give it.
    Park,
    /// The time; there is no object.
    Sleep,
}

/// A wait for an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JavaWait {
    /// In which way.
    pub kind: JavaWaitKind,
    /// Where the object was at that moment. It may be moved later.
    pub address: u64,
    /// Its class.
    pub class: String,
}

/// A thread at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JavaThread {
    /// Its name in Java.
    pub name: String,
    /// Its number in the machine's PID namespace.
    pub number: u32,
    /// Whether it runs, or is in code that the machine knows nothing of.
    pub runs: bool,
    /// What it waits for.
    pub wait: Option<JavaWait>,
    /// Where the objects are whose monitors it has.
    pub held: Vec<u64>,
    /// Its methods, innermost first.
    pub frames: Vec<CodeName>,
}

/// The threads of a dump. Those of the machine itself, which run no Java code, are left out.
pub fn threads(text: &str) -> Vec<JavaThread> {
    let mut found: Vec<JavaThread> = Vec::new();
    let mut is_thread = false;
    for line in text.lines() {
        if line.starts_with('"') {
            let thread = head(line);
            is_thread = thread.is_some() && found.len() < MAX_THREADS;
            found.extend(thread.filter(|_| is_thread));
        } else if is_thread && let Some(thread) = found.last_mut() {
            inside(line, thread);
        }
    }
    found.retain(|thread| !thread.frames.is_empty());
    // A thread that waits for a notification has given the monitor back, though its frames say that they have locked it.
    for thread in &mut found {
        if let Some(wait) = &thread.wait {
            thread.held.retain(|held| *held != wait.address);
        }
    }
    found
}

/// `"NAME" #12 prio=5 os_prio=0 cpu=1ms elapsed=4s tid=0x7f nid=0x7339 runnable  [0x7f]`; the number is decimal from JDK 21 on.
fn head(line: &str) -> Option<JavaThread> {
    // The name may contain anything, also quotation marks.
    let (name, rest) = line.strip_prefix('"')?.rsplit_once("\" ")?;
    let number = rest.split_ascii_whitespace().find_map(|word| word.strip_prefix("nid="))?;
    let number = match number.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some(JavaThread { name: short(name), number, ..JavaThread::default() })
}

/// A line about a thread.
fn inside(line: &str, thread: &mut JavaThread) {
    let line = line.trim();
    if let Some(state) = line.strip_prefix("java.lang.Thread.State: ") {
        thread.runs = state.starts_with("RUNNABLE");
        let sleep = JavaWait { kind: JavaWaitKind::Sleep, address: 0, class: String::new() };
        thread.wait = state.ends_with("(sleeping)").then_some(sleep);
    } else if let Some(at) = line.strip_prefix("at ") {
        if thread.frames.len() < MAX_FRAMES {
            thread.frames.extend(frame(at));
        }
    } else if let Some(about) = line.strip_prefix("- ") {
        object(about, thread);
    }
}

/// `CLASS.METHOD(MODULE@VERSION/FILE.java:LINE)`.
fn frame(at: &str) -> Option<CodeName> {
    let (method, place) = at.split_once('(')?;
    let place = place.trim_end_matches(')').rsplit('/').next().unwrap_or_default();
    let (file, line) = match place.split_once(':') {
        Some((file, line)) => (Some(short(file)), line.parse().ok()),
        None => (None, None),
    };
    // Classes that the machine makes at run time have their address in the name.
    let method = match method.split_once("/0x") {
        Some((class, rest)) => format!("{class}{}", rest.trim_start_matches(|c: char| c.is_ascii_hexdigit())),
        None => method.to_owned(),
    };
    Some(CodeName { function: Some(short(&method)), module: MODULE.to_owned(), file, line })
}

/// `locked <0x000000069ec19af0> (a Mon$Account)`.
fn object(about: &str, thread: &mut JavaThread) {
    let Some((what, rest)) = about.split_once('<') else { return };
    let Some((address, rest)) = rest.split_once('>') else { return };
    let Ok(address) = u64::from_str_radix(address.trim_start_matches("0x"), 16) else { return };
    let class = rest.trim().trim_start_matches("(a ").trim_end_matches(')');
    let kind = match what.trim() {
        "locked" => return thread.held.push(address),
        // After a notification the monitor is entered again.
        "waiting to lock" | "waiting to re-lock in wait()" => JavaWaitKind::Enter,
        "waiting on" => JavaWaitKind::Notify,
        "parking to wait for" => JavaWaitKind::Park,
        _ => return,
    };
    thread.wait.get_or_insert(JavaWait { kind, address, class: short(class) });
}

/// A name that fits a line and a terminal.
fn short(name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME).collect();
    numakit_sys::proc::printable(name.as_bytes())
}

#[cfg(test)]
mod tests;
