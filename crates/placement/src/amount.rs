//! Numbers of processes, threads and cores.

use crate::request::{Cores, PlacementRequest, RequestError};

/// What is placed: numbers of processes, threads and cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount {
    pub processes: u64,
    /// Threads of each process.
    pub threads: u64,
    /// Cores of each process.
    pub cores: u64,
}

impl Amount {
    /// The number of cores of all processes together.
    pub fn all_cores(self) -> u64 {
        self.processes * self.cores
    }

    /// The number that was requested, as a clause for messages.
    pub fn requested(self, request: &PlacementRequest) -> String {
        let cores = self.all_cores();
        let noun = if cores == 1 { "core" } else { "cores" };
        if request.processes == 1 && request.threads.is_none() {
            return format!("{cores} {noun} {} requested", if cores == 1 { "is" } else { "are" });
        }
        let verb = if self.processes == 1 { "needs" } else { "need" };
        format!("{} {verb} {cores} {noun}", of_each(self.processes, self.threads))
    }
}

/// `16 processes of 8 threads`.
fn of_each(processes: u64, threads: u64) -> String {
    let es = if processes == 1 { "" } else { "es" };
    let s = if threads == 1 { "" } else { "s" };
    format!("{processes} process{es} of {threads} thread{s}")
}

/// Checks the numbers of a request again: those that were read from a file may be 0.
pub(crate) fn check(request: &PlacementRequest) -> Result<(), RequestError> {
    let cores = if let Some(Cores::Count(count)) = request.cores { count } else { 1 };
    let numbers = [
        ("number of cores", cores),
        ("number of processes", request.processes),
        ("number of threads", request.threads.unwrap_or(1)),
        ("number of threads per core", request.threads_per_core),
        ("stride", request.stride),
    ];
    match numbers.iter().find(|(_, number)| *number == 0) {
        None => Ok(()),
        Some((what, _)) => Err(RequestError::NotANumber {
            what,
            value: "0".to_owned(),
            fix: "give a whole number such as 4",
        }),
    }
}

/// The amount of a request on a machine with this number of available cores.
pub(crate) fn of(request: &PlacementRequest, free: u64) -> Result<Amount, RequestError> {
    let processes = u64::from(request.processes);
    let width = u64::from(request.threads_per_core);
    let by_threads = |threads: u64| Amount { processes, threads, cores: threads.div_ceil(width) };
    let by_cores = |cores: u64| Amount { processes, threads: cores * width, cores };
    let threads = request.threads.map(u64::from);
    let listed = request.cpus.is_some() || request.nodes.is_some();
    match (request.cores, threads) {
        // A request without numbers, but with lists of CPUs or nodes, means all cores of these lists.
        (None, None) if listed && processes == 1 => Ok(by_cores(free.max(1))),
        (None, _) => Ok(by_threads(threads.unwrap_or(1))),
        (Some(Cores::Auto), None) => Ok(by_cores((free / processes).max(1))),
        (Some(Cores::Auto), Some(threads)) => Err(contradiction(
            format!("all free cores and {threads} threads for each process contradict each other"),
            "omit one of them",
        )),
        (Some(Cores::Count(cores)), _) => exactly(request, u64::from(cores), threads),
        (Some(Cores::All), _) => exactly(request, free.max(1), threads),
    }
}

/// The amount for this number of cores.
fn exactly(request: &PlacementRequest, cores: u64, threads: Option<u64>) -> Result<Amount, RequestError> {
    let (processes, width) = (u64::from(request.processes), u64::from(request.threads_per_core));
    if let Some(threads) = threads {
        let each = threads.div_ceil(width);
        if each * processes == cores {
            return Ok(Amount { processes, threads, cores: each });
        }
        let problem = format!(
            "{} on {} cores, and {cores} are requested",
            of_each(processes, threads),
            each * processes
        );
        let fix = match cores.checked_div(each).filter(|p| p * each == cores && *p > 0) {
            Some(fitting) => format!("omit the number of cores, or take --processes {fitting}"),
            None => "omit the number of cores".to_owned(),
        };
        return Err(contradiction(problem, fix));
    }
    if cores.is_multiple_of(processes) {
        let each = cores / processes;
        return Ok(Amount { processes, threads: each * width, cores: each });
    }
    let below = cores - cores % processes;
    let smaller = if below == 0 { String::new() } else { format!("{below} or ") };
    let divisor = (1..=processes.min(cores)).rev().find(|p| cores.is_multiple_of(*p)).unwrap_or(1);
    Err(contradiction(
        format!("{cores} cores cannot be divided evenly among {processes} processes"),
        format!("request {smaller}{} cores (-c), or take --processes {divisor}", below + processes),
    ))
}

fn contradiction(problem: impl Into<String>, fix: impl Into<String>) -> RequestError {
    RequestError::Contradiction { problem: problem.into(), fix: fix.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(cores: Option<Cores>, processes: u32, threads: Option<u32>, width: u32) -> String {
        let request = PlacementRequest {
            cores,
            processes,
            threads,
            threads_per_core: width,
            ..PlacementRequest::default()
        };
        match check(&request).and_then(|()| of(&request, 10)) {
            Ok(a) => format!("{}x{} on {}", a.processes, a.threads, a.all_cores()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn cores_processes_and_threads_go_together() {
        let count = |n| Some(Cores::Count(n));
        assert_eq!(amount(None, 1, None, 1), "1x1 on 1");
        assert_eq!(amount(count(6), 1, None, 1), "1x6 on 6");
        assert_eq!(amount(count(6), 1, None, 2), "1x12 on 6");
        assert_eq!(amount(None, 64, None, 1), "64x1 on 64");
        assert_eq!(amount(None, 16, Some(8), 1), "16x8 on 128");
        assert_eq!(amount(None, 16, Some(3), 2), "16x3 on 32");
        assert_eq!(amount(count(64), 16, None, 1), "16x4 on 64");
        assert_eq!(amount(count(128), 16, Some(8), 1), "16x8 on 128");
        assert_eq!(amount(Some(Cores::Auto), 1, None, 1), "1x10 on 10");
        assert_eq!(amount(Some(Cores::Auto), 3, None, 1), "3x3 on 9");
        assert_eq!(amount(Some(Cores::All), 2, None, 2), "2x10 on 10");
    }

    #[test]
    fn what_does_not_go_together_says_what_would() {
        let count = |n| Some(Cores::Count(n));
        for (got, wanted) in [
            (
                amount(count(65), 16, None, 1),
                "65 cores cannot be divided evenly among 16 processes; request 64 or 80 cores (-c), or take \
                 --processes 13",
            ),
            (
                amount(count(6), 16, None, 1),
                "6 cores cannot be divided evenly among 16 processes; request 16 cores (-c), or take --processes 6",
            ),
            (
                amount(count(8), 1, Some(4), 1),
                "1 process of 4 threads on 4 cores, and 8 are requested; omit the number of cores, \
                 or take --processes 2",
            ),
            (
                amount(Some(Cores::Auto), 1, Some(4), 1),
                "all free cores and 4 threads for each process contradict each other; omit one of \
                 them",
            ),
            (
                amount(Some(Cores::All), 3, None, 1),
                "10 cores cannot be divided evenly among 3 processes; request 9 or 12 cores (-c), or take \
                 --processes 2",
            ),
        ] {
            assert_eq!(got, wanted);
        }
        for (got, what) in [
            (amount(count(0), 1, None, 1), "number of cores '0'"),
            (amount(None, 0, None, 1), "number of processes '0'"),
            (amount(None, 1, Some(0), 1), "number of threads '0'"),
            (amount(None, 1, None, 0), "number of threads per core '0'"),
        ] {
            assert!(got.starts_with(what) && got.contains("at least 1"), "{got}");
        }
    }
}
