//! The doors of a running observation: a FIFO for `echo`, a socket with replies.

use crate::lines::LineBuffer;
use crate::order::ControlCommand;
use crate::run_directory;
use crate::session::ObeyError;
use numakit_sys::command::named_pipe;
use numakit_sys::stdio::note;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The FIFO of the original NUMAscope.
pub const COMPATIBLE_FIFO: &str = "/run/numascope-ctl";

/// Clients of the socket beyond these are turned away.
const MAX_CLIENTS: usize = 16;

/// The FIFOs and the socket of this process. Dropping it removes their names.
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
    /// Opens the doors in the run directory and, if asked, the original's FIFO.
    pub fn open(compatible: bool) -> io::Result<Self> {
        Self::open_in(run_directory::open()?, compatible.then(|| Path::new(COMPATIBLE_FIFO)))
    }

    fn open_in(directory: PathBuf, compatible: Option<&Path>) -> io::Result<Self> {
        let process = std::process::id();
        // A former process of this number left its doors.
        run_directory::forget(&directory, process);
        let listener = UnixListener::bind(run_directory::socket(&directory, process))?;
        listener.set_nonblocking(true)?;
        let mut endpoint = Self { directory, fifos: Vec::new(), listener, clients: Vec::new() };
        endpoint.add_fifo(run_directory::fifo(&endpoint.directory, process))?;
        if let Some(path) = compatible {
            forget_stale(path);
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

    /// What to wait for.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let fifos = self.fifos.iter().map(|f| f.file.as_fd());
        let clients = self.clients.iter().map(|c| c.stream.as_fd());
        fifos.chain([self.listener.as_fd()]).chain(clients)
    }

    /// Whether somebody wrote a line to a FIFO and did not end it.
    pub fn unfinished(&self) -> bool {
        self.fifos.iter().any(|f| f.lines.partial())
    }

    /// Takes such lines as whole.
    pub fn flush(&mut self, obey: &mut dyn FnMut(ControlCommand) -> Result<String, ObeyError>) {
        for fifo in &mut self.fifos {
            fifo.lines.flush(|line| tell(line, obey));
        }
    }

    /// Reads all that came in; whether anything came through a FIFO. What a FIFO's order
    /// answers goes to standard error when it is an error; a client of the socket gets
    /// `ok TEXT` or `error TEXT` for each line.
    pub fn serve(&mut self, obey: &mut dyn FnMut(ControlCommand) -> Result<String, ObeyError>) -> bool {
        let mut buffer = [0; 8192];
        let mut received = false;
        for fifo in &mut self.fifos {
            // Bounded, so that a flood cannot keep us from the rest.
            for _ in 0..16 {
                let Ok(count @ 1..) = fifo.file.read(&mut buffer) else { break };
                received = true;
                fifo.lines.push(&buffer[..count], |line| tell(line, obey));
            }
        }
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < MAX_CLIENTS && stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, lines: LineBuffer::default() });
            }
        }
        self.clients.retain_mut(|client| client.serve(&mut buffer, obey));
        received
    }
}

/// Removes a FIFO that nobody reads: the one who made it died.
fn forget_stale(path: &Path) {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_fifo()) && nobody_reads(path) {
        let _ = std::fs::remove_file(path);
    }

    fn nobody_reads(path: &Path) -> bool {
        let opened = File::options().write(true).custom_flags(numakit_sys::command::NO_WAIT).open(path);
        opened.is_err_and(|e| e.kind() != io::ErrorKind::PermissionDenied)
    }
}

fn tell(line: &[u8], obey: &mut dyn FnMut(ControlCommand) -> Result<String, ObeyError>) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    if let Err(why) = ControlCommand::parse(line).map_err(ObeyError::from).and_then(obey) {
        note(format_args!("control: {why}"));
    }
}

impl Client {
    /// Answers what came in; false when the client is gone.
    fn serve(
        &mut self,
        buffer: &mut [u8],
        obey: &mut dyn FnMut(ControlCommand) -> Result<String, ObeyError>,
    ) -> bool {
        let mut answers = Vec::new();
        let open = match self.stream.read(buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.lines.push(&buffer[..count], |line| {
                    let answer =
                        match ControlCommand::parse(line).map_err(ObeyError::from).and_then(&mut *obey) {
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
        // A client that does not read its answers is let go; it never holds us up.
        open && (answers.is_empty() || self.stream.write_all(&answers).is_ok())
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        run_directory::forget(&self.directory, std::process::id());
        for fifo in &self.fifos {
            let _ = std::fs::remove_file(&fifo.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    struct Doors {
        endpoint: Endpoint,
        seen: Vec<ControlCommand>,
    }

    fn doors(name: &str) -> Doors {
        let directory = std::env::temp_dir().join(format!("numakit-doors-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).unwrap();
        Doors { endpoint: Endpoint::open_in(directory, None).unwrap(), seen: Vec::new() }
    }

    impl Doors {
        fn serve(&mut self) {
            let seen = &mut self.seen;
            self.endpoint.serve(&mut |order| {
                seen.push(order);
                Ok("done".into())
            });
        }
    }

    #[test]
    fn a_fifo_takes_quick_writes_pieces_and_garbage() {
        let mut doors = doors("fifo");
        let path = doors.endpoint.fifo();
        let write = |text: &[u8]| File::options().write(true).open(&path).unwrap().write_all(text).unwrap();
        write(b"label one\n");
        write(b"label two\nla");
        write(b"bel three\n\n\x00\xff\xfe\n");
        doors.serve();
        write(b"label unended");
        doors.serve();
        assert!(doors.endpoint.unfinished());
        let mut last = Vec::new();
        doors.endpoint.flush(&mut |order| {
            last.push(order);
            Ok(String::new())
        });
        assert_eq!(last, [ControlCommand::Label("unended".into())]);
        let label = |text: &str| ControlCommand::Label(text.into());
        assert_eq!(doors.seen, [label("one"), label("two"), label("three")]);
    }

    #[test]
    fn a_flood_of_one_line_is_refused_and_the_next_order_is_obeyed() {
        let mut doors = doors("flood");
        let path = doors.endpoint.fifo();
        let thread = std::thread::spawn(move || {
            let mut fifo = File::options().write(true).open(&path).unwrap();
            fifo.write_all(&vec![b'x'; 1 << 20]).unwrap();
            fifo.write_all(b"\nstop\n").unwrap();
        });
        while doors.seen.is_empty() {
            doors.serve();
        }
        thread.join().unwrap();
        assert_eq!(doors.seen, [ControlCommand::Stop]);
    }

    #[test]
    fn the_socket_answers_each_line() {
        let mut doors = doors("socket");
        let socket = run_directory::socket(&doors.endpoint.directory, std::process::id());
        let mut client = UnixStream::connect(&socket).unwrap();
        client.write_all(b"pause\nnonsense\n").unwrap();
        doors.serve();
        doors.serve();
        let mut answers = BufReader::new(client).lines();
        assert_eq!(answers.next().unwrap().unwrap(), "ok done");
        assert!(answers.next().unwrap().unwrap().starts_with("error unknown order"));
        let directory = doors.endpoint.directory.clone();
        drop(doors);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        std::fs::remove_dir(directory).unwrap();
    }
}
