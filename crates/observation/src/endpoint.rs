//! The control channels of a running observation: a FIFO for `echo`, a socket with replies.

use crate::control_command::ControlCommand;
use crate::lines::LineBuffer;
use crate::run_directory;
use crate::session::ControlError;
use numakit_sys::command::named_pipe;
use numakit_sys::stdio::note;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The FIFO of the original NUMAscope.
pub const ORIGINAL_FIFO: &str = "/run/numascope-ctl";

/// Maximum number of clients of the socket; more are disconnected.
const MAX_CLIENTS: usize = 16;

/// The FIFOs and the socket of this process. Dropping it removes their files.
#[derive(Debug)]
pub struct Endpoint {
    directory: PathBuf,
    fifos: Vec<Fifo>,
    listener: UnixListener,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Fifo {
    path: PathBuf,
    file: File,
    lines: LineBuffer,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    lines: LineBuffer,
}

impl Endpoint {
    /// Creates FIFO and socket in the run directory and, if requested, the original's FIFO.
    pub fn open(original_fifo: bool) -> io::Result<Self> {
        Self::open_in(run_directory::open()?, original_fifo.then(|| Path::new(ORIGINAL_FIFO)))
    }

    fn open_in(directory: PathBuf, original_fifo: Option<&Path>) -> io::Result<Self> {
        let process = std::process::id();
        // An earlier process with this PID may have left its files.
        run_directory::remove_files(&directory, process);
        let listener = UnixListener::bind(run_directory::socket(&directory, process))?;
        listener.set_nonblocking(true)?;
        let mut endpoint = Self { directory, fifos: Vec::new(), listener, clients: Vec::new() };
        endpoint.add_fifo(run_directory::fifo(&endpoint.directory, process))?;
        if let Some(path) = original_fifo {
            remove_stale_fifo(path);
            endpoint.add_fifo(path.to_owned()).map_err(|error| {
                let why = match error.kind() {
                    io::ErrorKind::AlreadyExists => "another recorder uses it".to_owned(),
                    _ => error.to_string(),
                };
                io::Error::new(error.kind(), format!("{}: {why}", path.display()))
            })?;
        }
        Ok(endpoint)
    }

    fn add_fifo(&mut self, path: PathBuf) -> io::Result<()> {
        let file = named_pipe(&path, 0o600)?;
        self.fifos.push(Fifo { path, file, lines: LineBuffer::default() });
        Ok(())
    }

    /// The FIFO in the run directory.
    pub fn fifo(&self) -> PathBuf {
        run_directory::fifo(&self.directory, std::process::id())
    }

    /// The descriptors to wait for.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let fifos = self.fifos.iter().map(|f| f.file.as_fd());
        let clients = self.clients.iter().map(|c| c.stream.as_fd());
        fifos.chain([self.listener.as_fd()]).chain(clients)
    }

    /// Whether a FIFO has a line without an end.
    pub fn has_partial_line(&self) -> bool {
        self.fifos.iter().any(|f| f.lines.has_partial())
    }

    /// Executes such lines.
    pub fn flush(&mut self, execute: &mut dyn FnMut(ControlCommand) -> Result<String, ControlError>) {
        for fifo in &mut self.fifos {
            fifo.lines.flush(|line| execute_line(line, execute));
        }
    }

    /// Reads and executes all commands; returns whether anything came through a FIFO. The error of a
    /// FIFO's command goes to standard error; a client of the socket gets
    /// `ok TEXT` or `error TEXT` for each line.
    pub fn serve(&mut self, execute: &mut dyn FnMut(ControlCommand) -> Result<String, ControlError>) -> bool {
        let mut buffer = [0; 8192];
        let mut received = false;
        for fifo in &mut self.fifos {
            // Bounded, so that a flood does not block the rest.
            for _ in 0..16 {
                let Ok(count @ 1..) = fifo.file.read(&mut buffer) else { break };
                received = true;
                fifo.lines.push(&buffer[..count], |line| execute_line(line, execute));
            }
        }
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < MAX_CLIENTS && stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, lines: LineBuffer::default() });
            }
        }
        self.clients.retain_mut(|client| client.serve(&mut buffer, execute));
        received
    }
}

/// Removes a FIFO without a reader: the process that created it was killed.
fn remove_stale_fifo(path: &Path) {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_fifo()) && has_no_reader(path) {
        let _ = std::fs::remove_file(path);
    }

    fn has_no_reader(path: &Path) -> bool {
        let opened = File::options().write(true).custom_flags(numakit_sys::command::NO_WAIT).open(path);
        opened.is_err_and(|e| e.kind() != io::ErrorKind::PermissionDenied)
    }
}

fn execute_line(line: &[u8], execute: &mut dyn FnMut(ControlCommand) -> Result<String, ControlError>) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    if let Err(why) = ControlCommand::parse(line).map_err(ControlError::from).and_then(execute) {
        note(format_args!("control: {why}"));
    }
}

impl Client {
    /// Executes the received lines and replies; false if the client is disconnected.
    fn serve(
        &mut self,
        buffer: &mut [u8],
        execute: &mut dyn FnMut(ControlCommand) -> Result<String, ControlError>,
    ) -> bool {
        let mut answers = Vec::new();
        let open = match self.stream.read(buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.lines.push(&buffer[..count], |line| {
                    let answer =
                        match ControlCommand::parse(line).map_err(ControlError::from).and_then(&mut *execute)
                        {
                            Ok(text) => format!("ok {text}"),
                            Err(why) => format!("error {why}"),
                        };
                    answers.extend_from_slice(answer.trim_end().replace('\n', " ").as_bytes());
                    answers.push(b'\n');
                });
                true
            }
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        };
        // A client that does not read its replies is disconnected, so that it never blocks the thread.
        open && (answers.is_empty() || self.stream.write_all(&answers).is_ok())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        run_directory::remove_files(&self.directory, std::process::id());
        for fifo in &self.fifos {
            let _ = std::fs::remove_file(&fifo.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::until;
    use std::io::{BufRead, BufReader};

    struct Served {
        endpoint: Endpoint,
        executed: Vec<ControlCommand>,
    }

    fn served(name: &str) -> Served {
        let directory = std::env::temp_dir().join(format!("numakit-served-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).unwrap();
        Served { endpoint: Endpoint::open_in(directory, None).unwrap(), executed: Vec::new() }
    }

    impl Served {
        fn serve(&mut self) {
            let executed = &mut self.executed;
            self.endpoint.serve(&mut |command| {
                executed.push(command);
                Ok("done".into())
            });
        }
    }

    #[test]
    fn a_fifo_accepts_quick_writes_pieces_and_garbage() {
        let mut served = served("fifo");
        let path = served.endpoint.fifo();
        let write = |text: &[u8]| File::options().write(true).open(&path).unwrap().write_all(text).unwrap();
        write(b"label one\n");
        write(b"label two\nla");
        write(b"bel three\n\n\x00\xff\xfe\n");
        served.serve();
        write(b"label unended");
        served.serve();
        assert!(served.endpoint.has_partial_line());
        let mut last = Vec::new();
        served.endpoint.flush(&mut |command| {
            last.push(command);
            Ok(String::new())
        });
        assert_eq!(last, [ControlCommand::Label("unended".into())]);
        let label = |text: &str| ControlCommand::Label(text.into());
        assert_eq!(served.executed, [label("one"), label("two"), label("three")]);
    }

    #[test]
    fn a_long_line_is_refused_and_the_next_command_is_executed() {
        let mut served = served("flood");
        let path = served.endpoint.fifo();
        let thread = std::thread::spawn(move || {
            let mut fifo = File::options().write(true).open(&path).unwrap();
            fifo.write_all(&vec![b'x'; 1 << 20]).unwrap();
            fifo.write_all(b"\nstop\n").unwrap();
        });
        until!({
            served.serve();
            !served.executed.is_empty()
        });
        thread.join().unwrap();
        assert_eq!(served.executed, [ControlCommand::Stop]);
    }

    #[test]
    fn the_socket_replies_to_each_line() {
        let mut served = served("socket");
        let socket = run_directory::socket(&served.endpoint.directory, std::process::id());
        let mut client = UnixStream::connect(&socket).unwrap();
        client.write_all(b"pause\nnonsense\n").unwrap();
        served.serve();
        served.serve();
        let mut answers = BufReader::new(client).lines();
        assert_eq!(answers.next().unwrap().unwrap(), "ok done");
        assert!(answers.next().unwrap().unwrap().starts_with("error unknown command"));
        let directory = served.endpoint.directory.clone();
        drop(served);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        std::fs::remove_dir(directory).unwrap();
    }
}
