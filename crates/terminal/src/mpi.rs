//! `numa run --mpi-report`: what the calls of MPI programs cost.

use crate::alloc_profile::{bytes, percent};
use crate::table::page_table;
use numakit_model::numbers::{counted, duration, grouped};
use numakit_mpi::{
    CallTime, MpiFinding, MpiJob, MpiRank, MpiReport, MpiRow, ServedCollectives, ServedOperation, Talk,
};

const ABSENT: &str = "-";
/// Rows of the table of calls, ranks, and pairs of ranks; the report in JSON has all.
const ROWS: usize = 20;
const RANKS: usize = 16;
const PAIRS: usize = 10;

/// The whole text.
pub fn text(report: &MpiReport) -> String {
    let mut out: String = report.jobs.iter().map(job).collect::<Vec<_>>().join("\n");
    if report.jobs.is_empty() {
        out.push_str(
            "MPI: no process called MPI_Init. The report sees programs that load an MPI library (libmpi.so, libmpich.so, \
             libmpi_abi.so); one that contains its MPI library, or runs as another user or in another container, is not seen.\n",
        );
    }
    if report.left_out > 0 {
        out.push_str(&format!("There was no room for {}.\n", counted(report.left_out as usize, "more rank")));
    }
    out
}

fn job(job: &MpiJob) -> String {
    let mut out = head(job);
    out.push_str(&job.collectives.as_ref().map_or_else(String::new, collectives));
    let headings = [
        "COMMUNICATOR",
        "RANKS",
        "OPERATION",
        "SIZE",
        "CALLS",
        "TIME",
        "WAITING",
        "MOVING",
        "BYTES",
        "JUDGED",
    ];
    let rows: Vec<Vec<String>> = job.rows.iter().take(ROWS).map(row).collect();
    out.push('\n');
    out.push_str(&page_table(&headings, &rows, ""));
    out.push_str(&more(job.rows.len(), ROWS, "row"));
    if job.rows.iter().take(ROWS).any(|row| row.divided == CallTime::Estimated) {
        out.push_str("~ of messages: what is above the shortest call of this size\n");
    }
    let late = late_first(&job.ranks);
    let ranks: Vec<Vec<String>> = late.iter().take(RANKS).map(|one| rank(one)).collect();
    out.push('\n');
    out.push_str(&page_table(
        &["RANK", "CPUS", "LATE", "OTHERS WAITED", "WAITED", "IN MPI", "RAN"],
        &ranks,
        "",
    ));
    out.push_str(&more(job.ranks.len(), RANKS, "rank"));
    let pairs: Vec<Vec<String>> = job.talk.iter().take(PAIRS).map(pair).collect();
    if !pairs.is_empty() {
        out.push('\n');
        out.push_str(&page_table(&["FROM", "TO", "MESSAGES", "BYTES"], &pairs, ""));
        out.push_str(&more(job.talk.len(), PAIRS, "pair"));
    }
    out.push_str(&findings(&job.findings));
    out
}

fn head(job: &MpiJob) -> String {
    let seconds: f64 = job.ranks.iter().filter_map(|rank| rank.seconds).sum();
    let time = job.seconds.map_or_else(
        || "MPI_Finalize was not called".to_owned(),
        |seconds| format!("{} from MPI_Init to MPI_Finalize", duration(seconds)),
    );
    let seen = match job.ranks.len() {
        seen if seen == job.size as usize => counted(seen, "rank"),
        seen => format!("{seen} of {} seen here", counted(job.size as usize, "rank")),
    };
    let mut out = format!("MPI: {}, {seen}, {time}\n", job.library);
    if seconds > 0.0 {
        let share = |part: f64| percent(part / seconds);
        out.push_str(&format!(
            "Of the ranks' time {} was waiting in collectives for late ranks, {} moving data in them, {} in messages",
            share(job.waiting),
            share(job.moving),
            share(job.messages)
        ));
        if job.unjudged > 0.0 {
            out.push_str(&format!(", and {} in collectives of which it is not known", share(job.unjudged)));
        }
        out.push_str(".\n");
    }
    out
}

/// Which calls were the library's.
fn collectives(served: &ServedCollectives) -> String {
    let called = served.operations.iter().filter(|one| one.calls > 0 || one.served > 0);
    let count = |one: &ServedOperation| {
        let [part, of] = [one.served, one.calls].map(|calls| grouped(calls as f64));
        format!("{part} of {of} {}", one.operation)
    };
    let counts = called.map(count).collect::<Vec<_>>().join(", ");
    let counts = if counts.is_empty() { "there were none of its calls".to_owned() } else { counts };
    let why =
        served.obstacle.as_ref().map_or_else(String::new, |why| format!("; not those of all ranks: {why}"));
    format!("Collectives of the library (--collectives {}): {counts}{why}.\n", served.which)
}

fn row(row: &MpiRow) -> Vec<String> {
    let mark = if row.divided == CallTime::Estimated { "~" } else { "" };
    let time = |seconds: Option<f64>| {
        seconds.map_or_else(|| ABSENT.to_owned(), |seconds| format!("{mark}{}", duration(seconds)))
    };
    vec![
        row.communicator.clone(),
        if row.ranks == 0 { ABSENT.to_owned() } else { row.ranks.to_string() },
        row.operation.clone(),
        if row.to_bytes == 0 { ABSENT.to_owned() } else { bytes(row.from_bytes) },
        grouped(row.calls as f64),
        duration(row.seconds),
        time(row.waiting),
        time(row.moving),
        bytes(row.bytes),
        if row.divided == CallTime::Measured { percent(row.judged) } else { ABSENT.to_owned() },
    ]
}

fn late_first(ranks: &[MpiRank]) -> Vec<&MpiRank> {
    let mut sorted: Vec<&MpiRank> = ranks.iter().collect();
    sorted.sort_by(|one, other| other.waited_for_seconds.total_cmp(&one.waited_for_seconds));
    sorted
}

fn rank(rank: &MpiRank) -> Vec<String> {
    vec![
        rank.rank.to_string(),
        if rank.cpus.is_empty() { ABSENT.to_owned() } else { rank.cpus.clone() },
        grouped(rank.late as f64),
        duration(rank.waited_for_seconds),
        duration(rank.waited_seconds),
        duration(rank.in_mpi),
        rank.cpu_share.map_or_else(|| ABSENT.to_owned(), percent),
    ]
}

fn pair(talk: &Talk) -> Vec<String> {
    vec![talk.from.to_string(), talk.to.to_string(), grouped(talk.messages as f64), bytes(talk.bytes)]
}

fn more(all: usize, shown: usize, noun: &str) -> String {
    match all.checked_sub(shown) {
        None | Some(0) => String::new(),
        Some(left) => format!("{}: --json has all\n", counted(left, &format!("more {noun}"))),
    }
}

fn findings(findings: &[MpiFinding]) -> String {
    findings.iter().map(|finding| format!("\n{}\n  fix: {}\n", finding.text, finding.fix)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_mpi::{MpiProblem, VERSION};

    fn report() -> MpiReport {
        let row = MpiRow {
            communicator: "MPI_COMM_WORLD".to_owned(),
            ranks: 2,
            operation: "Allreduce".to_owned(),
            from_bytes: 8,
            to_bytes: 15,
            calls: 2000,
            bytes: 16000,
            seconds: 0.5,
            waiting: Some(0.4),
            moving: Some(0.1),
            divided: CallTime::Measured,
            judged: 1.0,
        };
        let messages = MpiRow { operation: "Recv".to_owned(), divided: CallTime::Estimated, ..row.clone() };
        let rank = |rank: u32| MpiRank {
            rank,
            pid: 10 + rank,
            cpus: rank.to_string(),
            seconds: Some(1.0),
            cpu_share: Some(0.99),
            in_mpi: 0.25,
            waited_seconds: 0.2,
            waited_for_seconds: f64::from(rank),
            late: 7,
        };
        let job = MpiJob {
            library: "Open MPI v5.0.11".to_owned(),
            size: 3,
            ranks: vec![rank(0), rank(1)],
            seconds: Some(1.0),
            waiting: 0.4,
            moving: 0.1,
            unjudged: 0.0,
            messages: 0.5,
            collectives: Some(ServedCollectives {
                which: "small".to_owned(),
                obstacle: Some("there is no room".to_owned()),
                communicators: 1,
                operations: vec![
                    ServedOperation { operation: "Bcast".to_owned(), calls: 0, served: 0 },
                    ServedOperation { operation: "Allreduce".to_owned(), calls: 2000, served: 1999 },
                ],
            }),
            rows: vec![row, messages],
            talk: vec![Talk { from: 0, to: 1, messages: 5, bytes: 2048 }],
            order: None,
            findings: vec![MpiFinding {
                problem: MpiProblem::Late,
                text: "rank 1 comes last".to_owned(),
                fix: "less work".to_owned(),
            }],
        };
        MpiReport { version: VERSION, command: String::new(), jobs: vec![job], left_out: 1 }
    }

    #[test]
    fn a_report_says_who_waits_for_whom() {
        let text = text(&report());
        for part in [
            "MPI: Open MPI v5.0.11, 2 of 3 ranks seen here, 1 s from MPI_Init to MPI_Finalize\n",
            "Of the ranks' time 20.0 % was waiting in collectives for late ranks, 5.0 % moving data in them, 25.0 % in messages.",
            "Collectives of the library (--collectives small): 1,999 of 2,000 Allreduce; not those of all ranks: there is no room.\n",
            "~400 ms",
            "rank 1 comes last\n  fix: less work\n",
            "There was no room for 1 more rank.",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let at = |part: &str| text.lines().position(|line| line.starts_with(part)).unwrap();
        assert!(at("1 ") < at("0 "), "the latest rank comes first:\n{text}");
    }

    #[test]
    fn a_run_without_mpi_says_so() {
        let none = MpiReport { jobs: Vec::new(), left_out: 0, ..report() };
        assert!(text(&none).starts_with("MPI: no process called MPI_Init."));
    }
}
