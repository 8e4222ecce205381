//! The state in which this process was started, before the runtime of Rust changed it: which standard streams were
//! closed, which signals were blocked, and whether SIGPIPE was ignored. Programs that we start get the same.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Bit N: standard stream N was closed. The runtime opens /dev/null in its place.
static CLOSED: AtomicU8 = AtomicU8::new(0);
/// Bit N: signal N was blocked.
static BLOCKED: AtomicU64 = AtomicU64::new(0);
/// Whether SIGPIPE was ignored when this process started; Rust's runtime always ignores it later.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// The kernel's signals have the numbers 1 to 64; bit 0 is the last one.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

// SAFETY: the loader calls the functions of this section once, before `main` and before the runtime starts, on the
// only thread; the function makes system calls and stores the results.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let open = |fd: &i32| {
        // SAFETY: asks for the flags of a descriptor, whether it is open or not.
        unsafe { libc::fcntl(*fd, libc::F_GETFD) >= 0 }
    };
    let closed = (0..3).filter(|fd| !open(fd)).fold(0, |bits, fd| bits | 1 << fd);
    CLOSED.store(closed, Ordering::Relaxed);
    // SAFETY: all zero bytes are valid values of both structures, which outlive the calls.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &mut set);
        let blocked = SIGNALS.filter(|&signal| libc::sigismember(&set, signal) == 1);
        BLOCKED.store(blocked.fold(0, |bits, signal| bits | 1 << (signal % 64)), Ordering::Relaxed);
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action);
        PIPE_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    }
}

/// Whether standard output was closed.
pub(crate) fn without_output() -> bool {
    CLOSED.load(Ordering::Relaxed) & 1 << libc::STDOUT_FILENO != 0
}

/// Restores signals and streams in a child before exec. Standard error stays open: libraries that are loaded into the
/// program print there. Makes only system calls and does not allocate.
pub(crate) fn restore() -> io::Result<()> {
    let (closed, blocked) = (CLOSED.load(Ordering::Relaxed), BLOCKED.load(Ordering::Relaxed));
    let pipe = if PIPE_IGNORED.load(Ordering::Relaxed) { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: the set is initialised before use; both dispositions are valid; closed descriptors belong to the child.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in SIGNALS.filter(|signal| blocked & 1 << (signal % 64) != 0) {
            libc::sigaddset(&mut set, signal);
        }
        libc::signal(libc::SIGPIPE, pipe);
        for fd in (0..2).filter(|fd| closed & 1 << fd != 0) {
            libc::close(fd);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
    }
    crate::signal::default_file_size_limit();
    Ok(())
}
