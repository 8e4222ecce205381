//! What the guest program `affinity` prints.

use numakit_model::CpuSet;

/// One process that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its rank, if it had one.
    pub rank: Option<u32>,
    /// The CPUs of its threads, in order.
    pub threads: Vec<CpuSet>,
    /// Pages of the stack and the thread-local memory of each thread: on its node, and elsewhere.
    pub pages: Vec<(u64, u64)>,
}

/// Reads lines `rank R thread T cpus LIST [node N here H elsewhere E]`; others are left out.
pub fn processes(text: &str) -> Result<Vec<Process>, String> {
    let mut found: Vec<Process> = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("rank ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let wrong = || format!("not a line of affinity: {line}");
        let ["rank", rank, "thread", thread, "cpus", cpus, rest @ ..] = words.as_slice() else {
            return Err(wrong());
        };
        let cpus = CpuSet::parse_list(cpus).map_err(|_| wrong())?;
        let thread: usize = thread.parse().map_err(|_| wrong())?;
        if thread == 0 {
            let rank = if *rank == "-" { None } else { Some(rank.parse().map_err(|_| wrong())?) };
            found.push(Process { rank, threads: Vec::new(), pages: Vec::new() });
        }
        let process = found.last_mut().filter(|process| process.threads.len() == thread).ok_or_else(wrong)?;
        process.threads.push(cpus);
        if let ["node", _, "here", here, "elsewhere", elsewhere] = rest {
            let number = |word: &str| word.parse().map_err(|_| wrong());
            process.pages.push((number(here)?, number(elsewhere)?));
        }
    }
    found.sort_by_key(|process| (process.rank, process.threads.first().and_then(CpuSet::first)));
    Ok(found)
}
