//! Barriers of other libraries: that of the C library, and that of an OpenMP library if the machine has one.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::io;

/// The C library's barrier.
pub struct PthreadBarrier {
    /// The barrier, in memory of its own, since it must not move.
    barrier: Box<UnsafeCell<libc::pthread_barrier_t>>,
}

// SAFETY: it is made to be used by several threads at once.
unsafe impl Sync for PthreadBarrier {}
// SAFETY: as above.
unsafe impl Send for PthreadBarrier {}

impl PthreadBarrier {
    /// For this number of threads.
    pub fn new(threads: u32) -> io::Result<Self> {
        // SAFETY: all zero bytes are a valid value, which is initialized before anyone uses it.
        let barrier = Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        // SAFETY: the pointer is to a live value.
        match unsafe { libc::pthread_barrier_init(barrier.get(), std::ptr::null(), threads) } {
            0 => Ok(Self { barrier }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Waits until all threads do.
    pub fn wait(&self) {
        // SAFETY: it was initialized, and lives as long as this.
        unsafe { libc::pthread_barrier_wait(self.barrier.get()) };
    }
}

impl Drop for PthreadBarrier {
    fn drop(&mut self) {
        // SAFETY: nobody has a reference, so that nobody waits.
        unsafe { libc::pthread_barrier_destroy(self.barrier.get()) };
    }
}

/// OpenMP libraries that have the functions which GCC's compiled code calls, in order of preference.
const LIBRARIES: [&CStr; 4] = [c"libgomp.so.1", c"libomp.so.5", c"libomp.so", c"libiomp5.so"];

type Body = unsafe extern "C" fn(*mut c_void);

/// An OpenMP library that was loaded here. It stays loaded.
#[derive(Debug, Clone, Copy)]
pub struct OpenMp {
    /// The name of its file.
    pub library: &'static str,
    parallel: unsafe extern "C" fn(Body, *mut c_void, c_uint, c_uint),
    barrier: unsafe extern "C" fn(),
    thread: unsafe extern "C" fn() -> c_int,
    threads: unsafe extern "C" fn() -> c_int,
}

impl OpenMp {
    /// The first of these libraries that this machine has; `None` if it has none.
    pub fn load() -> Option<Self> {
        // With OMP_PROC_BIND, libraries bind the thread that loads them; so this is not done by the calling thread.
        std::thread::spawn(|| LIBRARIES.into_iter().find_map(Self::open)).join().ok().flatten()
    }

    fn open(library: &'static CStr) -> Option<Self> {
        // SAFETY: a constant name; the initializers of these libraries need nothing from their caller.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return None;
        }
        let find = |name: &CStr| {
            // SAFETY: the handle is that of a loaded library.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        // SAFETY: the functions have these types in every library with these names: they are those of OpenMP's standard and of
        // the interface between GCC's code and its library.
        unsafe {
            Some(Self {
                library: library.to_str().ok()?,
                parallel: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(Body, *mut c_void, c_uint, c_uint),
                >(find(c"GOMP_parallel")?),
                barrier: std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(find(c"GOMP_barrier")?),
                thread: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(find(
                    c"omp_get_thread_num",
                )?),
                threads: std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(find(
                    c"omp_get_num_threads",
                )?),
            })
        }
    }

    /// Calls `work` in this number of threads, or in fewer if the library permits no more. Each thread gets its number, from
    /// 0, and the number of threads. One of them is the calling thread. Returns when all threads have returned.
    pub fn parallel(&self, threads: u32, work: &(dyn Fn(usize, usize) + Sync)) {
        struct Call<'a> {
            omp: OpenMp,
            work: &'a (dyn Fn(usize, usize) + Sync),
        }
        unsafe extern "C" fn body(call: *mut c_void) {
            // SAFETY: the library passes the pointer that it was given, to a value that lives until all threads are done.
            let call: &Call<'_> = unsafe { &*call.cast() };
            // SAFETY: functions without conditions.
            let (me, all) = unsafe { ((call.omp.thread)(), (call.omp.threads)()) };
            (call.work)(usize::try_from(me).unwrap_or(0), usize::try_from(all).unwrap_or(1));
        }
        let call = Call { omp: *self, work };
        // SAFETY: the function and its argument have the types that the library expects; a panic in it ends the process.
        unsafe { (self.parallel)(body, (&raw const call).cast_mut().cast(), threads, 0) };
    }

    /// Waits until all threads of the parallel work have called this; outside of such work, there is only one thread.
    pub fn barrier(&self) {
        // SAFETY: a function without conditions.
        unsafe { (self.barrier)() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const THREADS: usize = 3;
    const TIMES: usize = 50;

    #[test]
    fn nobody_waits_at_no_barrier() {
        assert!(PthreadBarrier::new(0).is_err());
    }

    #[test]
    fn threads_wait_at_openmps_barrier() {
        let Some(openmp) = OpenMp::load() else {
            return numakit_skips::COMPILERS.skip("there is no OpenMP library");
        };
        let [counter, seen, numbers, early] = [const { AtomicUsize::new(0) }; 4];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                openmp.parallel(THREADS as u32, &|me, all| {
                    numbers.fetch_or(1 << me, Ordering::Relaxed);
                    seen.store(all, Ordering::Relaxed);
                    // Every thread counts, waits, and then finds that all have counted. A panic would end the process.
                    for time in 1..=TIMES {
                        counter.fetch_add(1, Ordering::Relaxed);
                        openmp.barrier();
                        let is_early = counter.load(Ordering::Relaxed) < time * all;
                        early.fetch_add(usize::from(is_early), Ordering::Relaxed);
                    }
                });
            });
        });
        let all = seen.into_inner();
        assert!((1..=THREADS).contains(&all));
        assert_eq!((counter.into_inner(), numbers.into_inner()), (all * TIMES, (1 << all) - 1));
        assert_eq!(early.into_inner(), 0);
        openmp.barrier();
    }
}
