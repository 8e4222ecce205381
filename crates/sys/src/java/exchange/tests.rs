use super::*;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread::{JoinHandle, spawn};

/// A folder of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("numakit-java-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Asks a machine that listens here; it is the process and has the user of this test, as far as these are given.
    fn ask(&self, process: u32, user: u32, most: u64, patience: Duration) -> Result<String, AttachError> {
        let handle = handle(std::process::id()).unwrap();
        let folder = crate::file::open_folder(&self.0).unwrap();
        let exchange = Exchange { process, inner: 7, user, handle: &handle, folder: &folder };
        exchange.ask(["jcmd", "Compiler.perfmap"], most, patience)
    }

    fn ask_own(&self, most: u64, patience: Duration) -> Result<String, AttachError> {
        self.ask(std::process::id(), crate::user::id(), most, patience)
    }

    /// Answers one question in this way, and returns the question.
    fn serve(&self, reply: impl FnOnce(&mut UnixStream) + Send + 'static) -> JoinHandle<Vec<u8>> {
        let listener = UnixListener::bind(self.0.join(".java_pid7")).unwrap();
        spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut question = vec![0; 100];
            let length = socket.read(&mut question).unwrap();
            reply(&mut socket);
            question.truncate(length);
            question
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

#[test]
fn an_answer_is_the_text_behind_its_status() {
    let scratch = Scratch::new("answer");
    let server = scratch.serve(|socket| socket.write_all(b"0\n1:\nCommand executed successfully\n").unwrap());
    assert_eq!(scratch.ask_own(100, LONG).unwrap(), "1:\nCommand executed successfully\n");
    assert_eq!(server.join().unwrap(), b"1\0jcmd\0Compiler.perfmap\0\0\0");
}

#[test]
fn an_error_is_its_last_line() {
    let scratch = Scratch::new("error");
    let text = b"1\njava.lang.IllegalArgumentException: Unknown\x1b diagnostic command\n\n";
    let server = scratch.serve(|socket| socket.write_all(text).unwrap());
    let error = scratch.ask_own(1000, LONG).unwrap_err().to_string();
    assert_eq!(error, "it answered: java.lang.IllegalArgumentException: Unknown? diagnostic command");
    server.join().unwrap();
}

#[test]
fn hostile_answers_have_an_end() {
    let scratch = Scratch::new("endless");
    let server = scratch.serve(|socket| while socket.write_all(&[b'x'; 4096]).is_ok() {});
    let error = scratch.ask_own(100_000, LONG).unwrap_err().to_string();
    assert_eq!(error, "cannot read its answer: it has more than 100000 bytes");
    server.join().unwrap();
    let scratch = Scratch::new("nothing");
    let server = scratch.serve(|_| {});
    assert_eq!(scratch.ask_own(100, LONG).unwrap_err().to_string(), "it answered: nothing");
    server.join().unwrap();
}

#[test]
fn nobody_waits_for_a_machine_that_does_not_answer() {
    let scratch = Scratch::new("silent");
    let (end, until) = std::sync::mpsc::channel::<()>();
    let server = scratch.serve(move |_| assert!(until.recv().is_err()));
    assert!(matches!(scratch.ask_own(100, SHORT), Err(AttachError::NoAnswer)));
    drop(end);
    server.join().unwrap();
}

#[test]
fn a_socket_of_somebody_else_is_not_asked() {
    let scratch = Scratch::new("foreign");
    let listener = UnixListener::bind(scratch.0.join(".java_pid7")).unwrap();
    let error = scratch.ask(1, crate::user::id(), 100, LONG).unwrap_err().to_string();
    assert_eq!(error, "the socket /tmp/.java_pid7 is not its own");
    let error = scratch.ask(std::process::id(), crate::user::id() + 1, 100, LONG).unwrap_err();
    assert!(matches!(error, AttachError::Foreign(_)));
    drop(listener);
}

#[test]
fn a_process_that_does_not_handle_the_signal_never_gets_it() {
    let scratch = Scratch::new("signal");
    // It would end this process.
    assert!(matches!(scratch.ask_own(100, LONG), Err(AttachError::NoSignal)));
    assert_eq!(std::fs::read_dir(&scratch.0).unwrap().count(), 0, "the file for the machine is removed");
}
