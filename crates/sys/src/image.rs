//! A program file with its arguments and environment, as the kernel takes them: exec, and a vfork-like start.

use crate::check;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

/// Runs a file that the kernel cannot execute, as in execvp.
const SHELL: &CStr = c"/bin/sh";
/// For the child before exec.
const STACK: usize = 256 << 10;

/// All memory that exec needs, so that the child does not allocate.
pub(crate) struct Image {
    file: CString,
    words: Vec<CString>,
    variables: Vec<CString>,
    /// A variable whose value is the number of the process that executes the file; ends with a zero
    /// byte.
    process: Option<Vec<AtomicU8>>,
}

/// Digits of the largest process number.
const DIGITS: usize = 10;

impl Image {
    /// An error if a text contains a zero byte.
    pub fn new(
        file: &Path,
        words: &[OsString],
        environment: &[(OsString, OsString)],
        process: Option<&str>,
    ) -> io::Result<Self> {
        let file = CString::new(file.as_os_str().as_bytes())?;
        let words: Result<Vec<_>, _> = words.iter().map(|word| CString::new(word.as_bytes())).collect();
        let variable = |(name, value): &(OsString, OsString)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let variables: Result<Vec<_>, _> = environment.iter().map(variable).collect();
        let process = process.map(|name| {
            let bytes = [name.as_bytes(), b"=", &[b'0'; DIGITS], b"\0"].concat();
            bytes.into_iter().map(AtomicU8::new).collect()
        });
        Ok(Self { file, words: words?, variables: variables?, process })
    }

    /// Writes the number of the calling process into its variable. Nothing is allocated.
    fn write_process(process: &[AtomicU8]) {
        let mut number = std::process::id();
        let digits = process.len().saturating_sub(DIGITS + 1)..process.len().saturating_sub(1);
        for digit in process[digits].iter().rev() {
            digit.store(b'0' + (number % 10) as u8, Ordering::Relaxed);
            number /= 10;
        }
    }

    /// Becomes the program after `prepare`; returns the first error.
    pub fn exec(&self, prepare: impl Fn() -> io::Result<()>) -> io::Error {
        Pointers::of(self).exec(&self.preparation(&prepare))
    }

    /// Everything before exec, in the process that executes the file.
    fn preparation<'a>(
        &'a self,
        prepare: &'a impl Fn() -> io::Result<()>,
    ) -> impl Fn() -> io::Result<()> + 'a {
        move || {
            self.process.as_deref().into_iter().for_each(Self::write_process);
            prepare()
        }
    }

    /// Starts the program in a child, which calls `prepare` first; returns the child's PID after exec. Until then the child
    /// shares the memory of this process, and this thread waits: `prepare` must neither allocate nor take locks. Signals are
    /// blocked until exec.
    pub fn start(&self, prepare: impl Fn() -> io::Result<()>) -> io::Result<u32> {
        let prepare = self.preparation(&prepare);
        let state =
            ChildState { pointers: Pointers::of(self), prepare: &prepare, failure: AtomicI32::new(0) };
        let mut stack = vec![0u8; STACK];
        let top = stack.as_mut_ptr_range().end.map_addr(|address| address & !15);
        let child = without_signals(|| {
            // SAFETY: only the child uses the stack. This thread continues after the child has left this memory, so the
            // stack and the state outlive their use.
            check(unsafe {
                libc::clone(
                    child_entry,
                    top.cast(),
                    libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
                    (&raw const state).cast_mut().cast(),
                )
            } as i64)
        })?;
        match state.failure.load(Ordering::Acquire) {
            0 => Ok(child as u32),
            failure => {
                reap(child as u32);
                Err(io::Error::from_raw_os_error(failure))
            }
        }
    }
}

/// Waits for the end of a child; returns the status of waitpid.
pub(crate) fn reap(child: u32) -> i32 {
    let mut status = 0;
    // SAFETY: the status outlives the call.
    while unsafe { libc::waitpid(child as i32, &mut status, libc::__WALL) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    status
}

/// Shared by parent and child.
struct ChildState<'a> {
    pointers: Pointers,
    prepare: &'a dyn Fn() -> io::Result<()>,
    /// The errno; 0 without an error.
    failure: AtomicI32,
}

extern "C" fn child_entry(state: *mut c_void) -> c_int {
    // SAFETY: `start` passes it, and waits.
    let state = unsafe { &*state.cast_const().cast::<ChildState<'_>>() };
    let error = state.pointers.exec(state.prepare);
    state.failure.store(error.raw_os_error().unwrap_or(libc::EINVAL), Ordering::Release);
    // Ends only the child, without the exit handlers of this program.
    127
}

/// Null-terminated lists of pointers into an [`Image`]; valid as long as it lives.
struct Pointers {
    file: *const c_char,
    words: Vec<*const c_char>,
    variables: Vec<*const c_char>,
    /// Used if the kernel cannot execute the file.
    words_of_shell: Vec<*const c_char>,
}

impl Pointers {
    fn of(image: &Image) -> Self {
        let list =
            |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        let words: Vec<_> = list(&image.words);
        let process = image.process.iter().map(|bytes| bytes.as_ptr().cast::<c_char>());
        let variables = image.variables.iter().map(|text| text.as_ptr()).chain(process);
        let variables = variables.chain([std::ptr::null()]).collect();
        let file = image.file.as_ptr();
        let arguments = words.get(1..).unwrap_or(&[std::ptr::null()]);
        let words_of_shell = [SHELL.as_ptr(), file].into_iter().chain(arguments.iter().copied()).collect();
        Self { file, words_of_shell, variables, words }
    }

    fn exec(&self, prepare: &dyn Fn() -> io::Result<()>) -> io::Error {
        if let Err(error) = prepare() {
            return error;
        }
        let attempt = |file: *const c_char, words: &[*const c_char]| {
            // SAFETY: all pointers are to C strings of the image, which lives, and the lists are null-terminated.
            unsafe { libc::execve(file, words.as_ptr(), self.variables.as_ptr()) };
            io::Error::last_os_error()
        };
        let error = attempt(self.file, &self.words);
        if error.raw_os_error() == Some(libc::ENOEXEC) {
            attempt(SHELL.as_ptr(), &self.words_of_shell);
        }
        error
    }
}

/// Calls a function with all signals blocked.
pub(crate) fn without_signals<T>(then: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are initialised before use and outlive the calls.
    let before = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let result = then();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn image(file: &str, words: &[&str]) -> Image {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Image::new(Path::new(file), &words, &[("OUT".into(), "3".into())], Some("SELF")).unwrap()
    }

    fn status(image: &Image) -> i32 {
        libc::WEXITSTATUS(reap(image.start(crate::inherited::restore).unwrap()))
    }

    #[test]
    fn a_program_gets_its_words_and_variables_alone() {
        assert_eq!(status(&image("/bin/sh", &["name", "-c", "exit $OUT$#$HOME", "0", "a"])), 31);
        assert_eq!(status(&image("/bin/sh", &["name", "-c", "test $0 = name && exit 4"])), 4);
    }

    #[test]
    fn a_program_gets_its_own_pid() {
        assert_eq!(status(&image("/bin/sh", &["name", "-c", "test $SELF -eq $$ && exit 5"])), 5);
        // The same if it is started again.
        let image = image("/bin/sh", &["name", "-c", "test $SELF -eq $$ && exit 6"]);
        assert_eq!((status(&image), status(&image)), (6, 6));
    }

    #[test]
    fn the_first_error_is_returned_and_no_child_is_left() {
        let missing = image("/no/such/program", &["x"]);
        assert_eq!(missing.start(|| Ok(())).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        let refused = || Err(io::Error::from_raw_os_error(libc::EDOM));
        assert_eq!(missing.start(refused).unwrap_err().raw_os_error(), Some(libc::EDOM));
        assert_eq!(missing.exec(refused).raw_os_error(), Some(libc::EDOM));
    }

    #[test]
    fn a_file_that_the_kernel_does_not_know_is_for_the_shell() {
        let file = std::env::temp_dir().join(format!("numakit-image-{}", std::process::id()));
        std::fs::write(&file, "exit $OUT$#\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        let got = status(&image(file.to_str().unwrap(), &["name", "a", "b"]));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(got, 32);
    }

    #[test]
    fn signals_are_as_before_and_texts_have_no_zero() {
        let mask = || {
            let text = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            text.lines().find(|line| line.starts_with("SigBlk")).unwrap().to_owned()
        };
        let before = mask();
        status(&image("/bin/true", &["true"]));
        assert_eq!(mask(), before);
        assert!(Image::new(Path::new("/bin/true"), &["a\0b".into()], &[], None).is_err());
    }
}
