//! `syscall` of a thread: the call in which it waits, with its arguments.

/// What a thread does, by its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadCall {
    /// It runs, or could run.
    Running,
    /// It waits in a system call.
    Call {
        /// The call, by its number.
        number: i64,
        /// Its arguments.
        arguments: [u64; 6],
        /// Where the thread is in its program.
        place: BlockedPlace,
    },
    /// It waits in the kernel, but not in a call: for a page, or since it was stopped.
    Outside(BlockedPlace),
}

/// Where a thread that waits is in its program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct BlockedPlace {
    /// The stack pointer.
    pub stack: u64,
    /// The address of the next instruction.
    pub instruction: u64,
}

/// What a call can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallKind {
    /// Another thread: the first argument is the address of a futex.
    Futex,
    /// The descriptor that is the first argument.
    Descriptor,
    /// The descriptors of a list: its address and its length.
    Poll,
    /// Descriptors below the number that is the first argument.
    Select,
    /// The descriptors that the first argument watches.
    Epoll,
    /// The time.
    Timer,
    /// A child process.
    Child,
    /// A signal.
    Signal,
    /// A file system, without a descriptor that says which file.
    Files,
    /// Something else.
    Other,
}

impl ThreadCall {
    /// Parses the line; `None` if it is malformed.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.trim_end();
        if text == "running" {
            return Some(Self::Running);
        }
        let mut words = text.split(' ');
        let number: i64 = words.next()?.parse().ok()?;
        let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        let values: Vec<u64> = words.map(hex).collect::<Option<_>>()?;
        match *values.as_slice() {
            [stack, instruction] => Some(Self::Outside(BlockedPlace { stack, instruction })),
            [a, b, c, d, e, f, stack, instruction] => Some(Self::Call {
                number,
                arguments: [a, b, c, d, e, f],
                place: BlockedPlace { stack, instruction },
            }),
            _ => None,
        }
    }
}

/// The name of a call and what it can wait for; `None` if it is not known here.
pub fn call(number: i64) -> Option<(&'static str, CallKind)> {
    let known = |calls: &[(i64, &'static str, CallKind)]| {
        calls.iter().find(|(known, ..)| *known == number).map(|(_, name, kind)| (*name, *kind))
    };
    known(CALLS).or_else(|| known(OLD_CALLS))
}

macro_rules! calls {
    ($($kind:ident: $($name:ident $(= $constant:ident)?)*;)*) => {
        &[$($((calls!(@number $name $($constant)?), stringify!($name), CallKind::$kind),)*)*]
    };
    (@number $name:ident $constant:ident) => { libc::$constant };
}

/// The calls of all architectures.
const CALLS: &[(i64, &str, CallKind)] = calls! {
    Futex: futex = SYS_futex;
    Descriptor: read = SYS_read write = SYS_write readv = SYS_readv writev = SYS_writev pread64 = SYS_pread64
        pwrite64 = SYS_pwrite64 preadv = SYS_preadv pwritev = SYS_pwritev preadv2 = SYS_preadv2
        pwritev2 = SYS_pwritev2 recvfrom = SYS_recvfrom sendto = SYS_sendto recvmsg = SYS_recvmsg
        sendmsg = SYS_sendmsg recvmmsg = SYS_recvmmsg sendmmsg = SYS_sendmmsg accept = SYS_accept
        accept4 = SYS_accept4 connect = SYS_connect fsync = SYS_fsync fdatasync = SYS_fdatasync
        sync_file_range = SYS_sync_file_range sendfile = SYS_sendfile splice = SYS_splice tee = SYS_tee
        ioctl = SYS_ioctl flock = SYS_flock fcntl = SYS_fcntl fallocate = SYS_fallocate
        ftruncate = SYS_ftruncate getdents64 = SYS_getdents64 io_uring_enter = SYS_io_uring_enter;
    Poll: ppoll = SYS_ppoll;
    Select: pselect6 = SYS_pselect6;
    Epoll: epoll_pwait = SYS_epoll_pwait epoll_pwait2 = SYS_epoll_pwait2;
    Timer: nanosleep = SYS_nanosleep clock_nanosleep = SYS_clock_nanosleep;
    Child: wait4 = SYS_wait4 waitid = SYS_waitid;
    Signal: rt_sigtimedwait = SYS_rt_sigtimedwait rt_sigsuspend = SYS_rt_sigsuspend;
    Files: openat = SYS_openat close = SYS_close sync = SYS_sync syncfs = SYS_syncfs msync = SYS_msync statx = SYS_statx
        newfstatat = SYS_newfstatat unlinkat = SYS_unlinkat renameat2 = SYS_renameat2 mkdirat = SYS_mkdirat;
    Other: mmap = SYS_mmap
        munmap = SYS_munmap madvise = SYS_madvise mprotect = SYS_mprotect execve = SYS_execve clone = SYS_clone
        exit_group = SYS_exit_group msgrcv = SYS_msgrcv msgsnd = SYS_msgsnd semtimedop = SYS_semtimedop
        semop = SYS_semop mq_timedreceive = SYS_mq_timedreceive mq_timedsend = SYS_mq_timedsend
        io_getevents = SYS_io_getevents sched_yield = SYS_sched_yield
        restart_syscall = SYS_restart_syscall;
};

/// Calls that only older architectures have.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[(i64, &str, CallKind)] = calls! {
    Poll: poll = SYS_poll;
    Select: select = SYS_select;
    Epoll: epoll_wait = SYS_epoll_wait;
    Signal: pause = SYS_pause;
    Files: open = SYS_open stat = SYS_stat lstat = SYS_lstat unlink = SYS_unlink rename = SYS_rename mkdir = SYS_mkdir
        rmdir = SYS_rmdir creat = SYS_creat;
    Other: vfork = SYS_vfork fork = SYS_fork;
};
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[(i64, &str, CallKind)] = &[];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SysRoot;
    use crate::proc::TaskDir;

    #[test]
    fn each_form_of_the_line_is_parsed() {
        let place = BlockedPlace { stack: 0x7ff0, instruction: 0x40 };
        assert_eq!(ThreadCall::parse(b"running\n"), Some(ThreadCall::Running));
        assert_eq!(ThreadCall::parse(b"-1 0x7ff0 0x40\n"), Some(ThreadCall::Outside(place)));
        let call = ThreadCall::parse(b"202 0x1 0x80 0x2 0x0 0x0 0x9 0x7ff0 0x40\n");
        assert_eq!(call, Some(ThreadCall::Call { number: 202, arguments: [1, 0x80, 2, 0, 0, 9], place }));
        for malformed in ["", "x", "7", "7 0x1", "7 1 2", "7 0x1 0x2 0x3", "-1 0xg 0x1"] {
            assert_eq!(ThreadCall::parse(malformed.as_bytes()), None, "{malformed}");
        }
    }

    #[test]
    fn calls_have_names_and_kinds() {
        assert_eq!(call(libc::SYS_futex), Some(("futex", CallKind::Futex)));
        assert_eq!(call(libc::SYS_read), Some(("read", CallKind::Descriptor)));
        assert_eq!(call(libc::SYS_clock_nanosleep), Some(("clock_nanosleep", CallKind::Timer)));
        assert_eq!(call(-1), None);
    }

    #[test]
    fn a_thread_of_this_process_that_waits_is_in_its_call() {
        let (read, write) = std::io::pipe().unwrap();
        let thread = std::thread::spawn(move || std::io::Read::read(&mut { read }, &mut [0]));
        let root = SysRoot::host();
        let me = TaskDir::of(&root, std::process::id());
        let reads = |call| matches!(call, ThreadCall::Call { number, .. } if number == libc::SYS_read);
        let seen = numakit_testing::wait::wait_for("a thread that reads", || {
            let calls = me.threads().unwrap().into_iter().map(|tid| me.thread(tid).bytes("syscall"));
            match calls.collect::<Result<Vec<_>, _>>() {
                // A thread may end meanwhile.
                Err(error) if error.is_missing() => None,
                Err(error) => Some(Err(error)),
                Ok(texts) => {
                    texts.iter().filter_map(|text| ThreadCall::parse(text)).any(reads).then_some(Ok(()))
                }
            }
        });
        if let Err(error) = seen {
            return numakit_skips::PRIVILEGES.skip(format_args!("{error}"));
        }
        drop(write);
        assert_eq!(thread.join().unwrap().unwrap(), 0);
    }
}
