//! `numa bench mpi`: small collectives, those of an MPI beside those of libnumampi.

use crate::alloc_profile::bytes;
use crate::table::page_table;
use numakit_bench::{MeasuredCollective, MeasuredJob, MeasuredJobs};
use numakit_model::numbers::{counted, duration};

const ABSENT: &str = "-";
const HEADINGS: [&str; 6] = ["OPERATION", "SIZE", "MPI'S", "OWN", "RATIO", "AUTO HAS"];

/// The whole text.
pub fn collectives_page(measured: &MeasuredJobs) -> String {
    measured.jobs.iter().map(job).collect::<Vec<_>>().join("\n")
}

fn job(job: &MeasuredJob) -> String {
    let rows: Vec<Vec<String>> = job.collectives.iter().map(|one| row(job, one)).collect();
    let pairs = job.collectives.iter().map(|one| one.ratio.samples);
    let least = pairs.min().unwrap_or(0);
    let missing = job.missing().map_or_else(String::new, |missing| format!("{missing}\n"));
    format!(
        "{}, {}\n\n{}medians of at least {}; {}\n{missing}",
        job.mpi(),
        counted(job.ranks as usize, "rank"),
        page_table(&HEADINGS, &rows, ""),
        counted(least, "pair"),
        job.conclusion()
    )
}

fn row(job: &MeasuredJob, one: &MeasuredCollective) -> Vec<String> {
    vec![
        one.operation.clone(),
        if one.bytes == 0 { ABSENT.to_owned() } else { bytes(u64::from(one.bytes)) },
        duration(one.theirs.median * 1e-6),
        duration(one.own.median * 1e-6),
        format!("{:.2}", one.ratio.median),
        if job.is_used(one) { "own" } else { "MPI's" }.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_auto_does() {
        let text = "measured Barrier 2 0 51 100000 200000 300000 40000 90000 95000 300000 450000 500000 MPICH Version:\t4.0.2\n\
                    measured Bcast 2 1024 9 100000 200000 300000 40000 990000 990000 300000 4950000 5000000 MPICH Version:\t4.0.2\n\
                    Barrier 2 2 0 MPICH Version:\t4.0.2\n";
        let page = collectives_page(&MeasuredJobs::parse(text));
        assert_eq!(
            page,
            "MPICH 4.0.2, 2 ranks\n\n\
             OPERATION      SIZE   MPI'S     OWN  RATIO  AUTO HAS\n\
             Barrier           -  200 ns   90 ns   0.45       own\n\
             Bcast      1.00 KiB  200 ns  990 ns   4.95     MPI's\n\
             medians of at least 9 pairs; --collectives auto has the library's Barrier\n\
             11 of 13 operations and sizes were not measured in the 5 seconds that there are, and are left to the MPI; \
             measure again when less runs on this machine\n"
        );
    }
}
