//! A process that does a work with one allocator, and whether it had that allocator.

use crate::alloc::libraries::Allocator;
use crate::alloc::work::{WorkDone, WorkRequest};
use crate::ground::Ground;
use numakit_sys::command::Running;
use numakit_sys::{clock, file, proc, signal};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::time::Duration;

/// How much longer than asked for a child may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks at a child.
const LOOK: Duration = Duration::from_millis(5);
/// How long after the end of a child the run waits to learn that the user ended it: the same signal ends both.
const NEWS: Duration = Duration::from_secs(2);
/// Maximum number of bytes that are kept of a child's output.
const MAX_TEXT: u64 = 4096;
/// Maximum number of bytes of a child's output that are quoted in a reason.
const MAX_SAID: usize = 300;

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The user ended the run.
    Stopped,
    /// This work was not done.
    Work(String),
    /// The process had a different allocator than the one to measure.
    Allocator(String),
}

/// Does a work with an allocator in a process of its own. `starter` is the command that takes a request as its last word.
pub(crate) fn run(
    ground: &Ground<'_>,
    starter: &[OsString],
    allocator: &Allocator,
    request: &WorkRequest,
    patience: Duration,
) -> Result<WorkDone, Lack> {
    let failed = |what: &str, error: std::io::Error| Lack::Work(format!("{what}: {error}"));
    let words = serde_json::to_string(request).map_err(|error| Lack::Work(error.to_string()))?;
    let words: Vec<OsString> = starter.iter().cloned().chain([words.into()]).collect();
    let mut said =
        file::create_in_memory().map_err(|error| failed("there is no memory for its words", error))?;
    let variables = [("LD_PRELOAD".into(), allocator.preload.clone())];
    let child = Running::start_bound(&words, &variables, &said)
        .map_err(|error| failed("its process does not start", error))?;
    let status = ended(ground, child, request.time + patience)?;
    let text = text_of(&mut said);
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    match (status, serde_json::from_str::<WorkDone>(last)) {
        (0, Ok(done)) => verified(done, &allocator.file, before),
        (0, Err(_)) => Err(Lack::Work(format!("its process says nothing that can be read{}", quoted(&text)))),
        (status @ 129.., _) => {
            Err(Lack::Work(format!("its process was ended by signal {}{}", status - 128, quoted(&text))))
        }
        (status, _) => Err(Lack::Work(format!("its process ended with status {status}{}", quoted(&text)))),
    }
}

/// Waits for the end of a child, and ends it if it takes too long or if the user ends the run.
fn ended(ground: &Ground<'_>, mut child: Running, limit: Duration) -> Result<i32, Lack> {
    let end = clock::monotonic().saturating_add(limit.as_nanos() as u64);
    let lost = |error: std::io::Error| Lack::Work(format!("its process cannot be waited for: {error}"));
    let mut late = false;
    loop {
        if let Some(status) = child.ended().map_err(lost)? {
            return match status {
                _ if ground.is_stopped() || is_stopped_soon(ground, status) => Err(Lack::Stopped),
                _ if late => Err(Lack::Work(format!("its process had not ended after {limit:?}"))),
                status => Ok(status),
            };
        }
        late |= clock::monotonic() >= end;
        if late || ground.is_stopped() {
            child.signal(signal::KILL);
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether the signal that ended the child is for all processes of the terminal, and so for this one.
fn is_stopped_soon(ground: &Ground<'_>, status: i32) -> bool {
    let of_terminal = [signal::INTERRUPT, signal::TERMINATE, signal::HANGUP].map(|signal| 128 + signal);
    let end = clock::monotonic() + NEWS.as_nanos() as u64;
    while of_terminal.contains(&status) && !ground.is_stopped() && clock::monotonic() < end {
        std::thread::sleep(LOOK);
    }
    ground.is_stopped()
}

fn text_of(said: &mut File) -> String {
    let mut bytes = Vec::new();
    // If the output cannot be read, there is no result, and the reason says so.
    let _ = said.rewind().and_then(|()| said.take(MAX_TEXT).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The output of a process in one line, for a reason.
fn quoted(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = proc::printable(line.as_bytes()).chars().take(MAX_SAID).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}

/// Whether the blocks came from the library. The loader says what it cannot preload, and starts the program without it.
fn verified(done: WorkDone, file: &Path, before: &str) -> Result<WorkDone, Lack> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match &done.allocator {
        Some(found) if real(Path::new(found)) == real(file) => Ok(done),
        Some(found) => Err(Lack::Allocator(format!(
            "{} was not loaded: malloc is that of {}{}",
            file.display(),
            proc::printable(found.as_bytes()),
            quoted(before)
        ))),
        None => Err(Lack::Allocator("it is not known which library has malloc".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::work::{AllocWork, WorkSeat};
    use crate::ground::on_this_machine;
    use crate::interruptible::Watch;
    use crate::settings::BenchSettings;
    use numakit_sys::SysRoot;

    const DONE: &str = r#"{"allocator":"/etc/passwd","operations":1,"wall":2,"cpu":3,"resident":4,"live":5,"near":[1,2],"near_refused":null}"#;

    fn request() -> WorkRequest {
        let seats = vec![WorkSeat { cpu: 0, node: 0 }];
        let (work, time) = (AllocWork::Small, Duration::from_millis(1));
        WorkRequest { work, seats, time, bytes: 1 << 20, asks_nodes: false }
    }

    /// What a script says of itself as a child.
    fn script(ground: &Ground<'_>, script: &str, patience: Duration) -> Result<WorkDone, Lack> {
        let starter: Vec<OsString> = ["sh", "-c", script, DONE].iter().map(OsString::from).collect();
        let (name, file) = ("passwd", "/etc/passwd".into());
        run(ground, &starter, &Allocator { name, preload: OsString::new(), file }, &request(), patience)
    }

    #[test]
    fn what_a_child_says_is_a_result_or_a_reason() {
        on_this_machine(|ground| {
            let said = |text: &str| script(ground, text, PATIENCE);
            let done = said("echo some words >&2; echo \"$0\"").unwrap();
            assert_eq!((done.operations, done.near), (1, Some((1, 2))));
            let reason = |text: &str| match said(text) {
                Err(Lack::Work(why)) => why,
                other => panic!("{other:?}"),
            };
            let controls = reason("printf 'free(): invalid \\033 pointer'; kill -ABRT $$");
            assert!(controls.contains("invalid ? pointer"), "{controls}");
            assert!(reason("echo 'free(): bad'; kill -SEGV $$").contains("ended by signal 11: free(): bad"));
            assert!(reason("exit 3").contains("ended with status 3"));
            assert!(reason("echo nothing").contains("nothing that can be read: nothing"));
            assert!(reason("kill -KILL $$").contains("ended by signal 9"));
            let Err(Lack::Work(why)) = script(ground, "exec sleep 600", Duration::from_millis(50)) else {
                panic!("a child without an end has a result")
            };
            assert!(why.contains("had not ended after 51ms"), "{why}");
        });
    }

    #[test]
    fn another_allocator_is_no_result() {
        on_this_machine(|ground| {
            let text = "echo ERROR: cannot be preloaded; echo \"$0\" | sed s/passwd/group/";
            let Err(Lack::Allocator(why)) = script(ground, text, PATIENCE) else { panic!("it is a result") };
            assert_eq!(
                why,
                "/etc/passwd was not loaded: malloc is that of /etc/group: ERROR: cannot be preloaded"
            );
            let text = "echo \"$0\" | sed 's,\"/etc/passwd\",null,'";
            assert!(matches!(script(ground, text, PATIENCE), Err(Lack::Allocator(_))));
        });
    }

    #[test]
    fn a_stopped_run_ends_its_child() {
        let topology = numakit_topology::read(&SysRoot::host()).unwrap();
        let (settings, watch) = (BenchSettings::default(), Watch::default());
        watch.stop();
        let ground = Ground::new(SysRoot::host(), &topology, &settings, true, &watch);
        assert_eq!(script(&ground, "exec sleep 600", PATIENCE), Err(Lack::Stopped));
        assert_eq!(script(&ground, "kill -INT $$", PATIENCE), Err(Lack::Stopped));
    }
}
