//! What small collectives of MPI programs take, those of libnumampi and those of an MPI, as the ranks have measured it; and the table of
//! the machine, by which `numa run --collectives auto` decides. `native/mpi/measure.h` has the form of its lines.

use crate::results::kept;
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, NamedTable};
use numakit_model::Topology;
use numakit_model::numbers::grouped;
use std::io;
use std::path::PathBuf;

/// The name of its results.
pub const COLLECTIVES: &str = "mpi";
/// The longest text that ranks write, in bytes.
pub const MOST_BYTES: u64 = 1 << 20;
/// What the table keeps: the library reads 64 KiB of it, and 64 rows of an MPI.
const MOST_JOBS: usize = 32;
const MOST_JOBS_OF_MPI: usize = 16;
/// Operations and sizes of one job.
const MEASUREMENTS: usize = 13;
/// These, and a row for each operation.
const MOST_LINES: usize = 20;
const MOST_LINE: usize = 256;

const OPERATIONS: [&str; 4] = ["Barrier", "Bcast", "Reduce", "Allreduce"];
const MOST_RANKS: u32 = 1024;
const LARGEST: u32 = 4096;

/// What the ranks of one or several jobs have measured, the last one at the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeasuredJobs {
    /// The jobs.
    pub jobs: Vec<MeasuredJob>,
    /// Why ranks did not measure, as the first one says.
    pub refusal: Option<String>,
}

/// What a number of ranks has measured with an MPI.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredJob {
    /// How the text begins by which the MPI names itself.
    pub library: String,
    /// Ranks of `MPI_COMM_WORLD`.
    pub ranks: u32,
    /// What was measured.
    pub collectives: Vec<MeasuredCollective>,
    /// Operations that pay, and up to how many bytes.
    pub pays: Vec<(String, u32)>,
    /// The lines of all this.
    lines: Vec<String>,
}

/// An operation of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredCollective {
    /// As in `Allreduce`.
    pub operation: String,
    /// Its bytes; 0 of a barrier.
    pub bytes: u32,
    /// Time of the MPI's, in microseconds.
    pub theirs: Quantiles,
    /// Time of the library's, in microseconds.
    pub own: Quantiles,
    /// The library's time in units of that of the MPI, of pairs of measurements.
    pub ratio: Quantiles,
}

/// A line that is right.
enum Line {
    Measured(MeasuredCollective),
    Pays(String, u32),
}

impl MeasuredJobs {
    /// What the lines say; others are left out.
    pub fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines().filter(|line| line.len() <= MOST_LINE) {
            if let Some(why) = line.strip_prefix("refused ") {
                let why: String = why.chars().filter(|letter| !letter.is_control()).collect();
                found.refusal.get_or_insert(why);
            } else if let Some((library, ranks, content)) = parse(line) {
                let Some(job) = found.job(library, ranks) else { continue };
                job.add(line, content);
            }
        }
        found
    }

    /// The job, which may be new; `None` if there are too many.
    fn job(&mut self, library: &str, ranks: u32) -> Option<&mut MeasuredJob> {
        let is_it = |job: &MeasuredJob| job.library == library && job.ranks == ranks;
        let at = match self.jobs.iter().position(is_it) {
            Some(at) => at,
            None if self.jobs.len() == MOST_JOBS => return None,
            None => {
                let library = library.to_owned();
                self.jobs.push(MeasuredJob {
                    library,
                    ranks,
                    collectives: Vec::new(),
                    pays: Vec::new(),
                    lines: Vec::new(),
                });
                self.jobs.len() - 1
            }
        };
        self.jobs.get_mut(at)
    }

    /// The text of the table that these jobs and those of an older table make: what was measured again is replaced, and what
    /// was not measured for longest is left out if there is too much.
    pub fn table(&self, older: &str) -> String {
        let older = Self::parse(older).jobs;
        let is_new = |job: &MeasuredJob| {
            self.jobs.iter().any(|new| new.library == job.library && new.ranks == job.ranks)
        };
        let mut kept: Vec<&MeasuredJob> = Vec::new();
        for job in self.jobs.iter().chain(older.iter().filter(|job| !is_new(job))) {
            let of_mpi = kept.iter().filter(|other| other.library == job.library).count();
            if kept.len() < MOST_JOBS && of_mpi < MOST_JOBS_OF_MPI {
                kept.push(job);
            }
        }
        kept.iter().flat_map(|job| &job.lines).map(|line| format!("{line}\n")).collect()
    }

    /// As results of a benchmark.
    pub fn result(&self) -> BenchResult {
        let mut result = BenchResult { name: COLLECTIVES.to_owned(), ..BenchResult::default() };
        for job in &self.jobs {
            let rows: Vec<String> = job.collectives.iter().map(MeasuredCollective::name).collect();
            let what = format!("{}, {} ranks", job.mpi(), job.ranks);
            let mut times = NamedTable::new(
                &format!("time of a collective, {what}"),
                "us",
                true,
                ("operation", rows.clone()),
                ("whose", vec!["the MPI's".to_owned(), "libnumampi's".to_owned()]),
            );
            let mut shares = NamedTable::new(
                &format!("time of libnumampi's collective, of the MPI's, {what}"),
                "%",
                true,
                ("operation", rows),
                ("", vec!["share".to_owned()]),
            );
            for (at, collective) in job.collectives.iter().enumerate() {
                times.set(at, 0, Some(collective.theirs));
                times.set(at, 1, Some(collective.own));
                shares.set(at, 0, Some(scaled(collective.ratio, 100.0)));
            }
            result.tables.extend([times, shares]);
            result.remarks.push(format!("{what}: {}", job.conclusion()));
            result.warnings.extend(job.missing().map(|missing| format!("{what}: {missing}")));
        }
        result
    }
}

impl MeasuredJob {
    /// Adds a line. What the same number of ranks has measured before is replaced.
    fn add(&mut self, line: &str, content: Line) {
        match content {
            Line::Measured(collective) => {
                if self.collectives.iter().any(|other| other.name() == collective.name()) {
                    (self.collectives, self.pays, self.lines) = (Vec::new(), Vec::new(), Vec::new());
                }
                self.collectives.push(collective);
            }
            Line::Pays(operation, _) if self.pays.iter().any(|(other, _)| *other == operation) => return,
            Line::Pays(operation, most) => self.pays.push((operation, most)),
        }
        if self.lines.len() < MOST_LINES {
            self.lines.push(line.to_owned());
        }
    }

    /// The MPI, without what its text has around the version.
    pub fn mpi(&self) -> String {
        let words: Vec<&str> = self.library.split_whitespace().collect();
        words.join(" ").replace(" Version:", "")
    }

    /// Whether `auto` has the library's.
    pub fn is_used(&self, collective: &MeasuredCollective) -> bool {
        self.pays
            .iter()
            .any(|(operation, most)| *operation == collective.operation && collective.bytes <= *most)
    }

    /// What was not measured, if anything; `auto` leaves it to the MPI.
    pub fn missing(&self) -> Option<String> {
        let missing = MEASUREMENTS.checked_sub(self.collectives.len()).filter(|missing| *missing > 0)?;
        Some(format!(
            "{missing} of {MEASUREMENTS} operations and sizes were not measured in the 5 seconds that there are, and are left to the MPI; \
             measure again when less runs on this machine"
        ))
    }

    /// What `auto` does with it.
    pub fn conclusion(&self) -> String {
        let word = |(operation, most): &(String, u32)| match most {
            0 => operation.clone(),
            most => format!("{operation} up to {} bytes", grouped(f64::from(*most))),
        };
        match self.pays.iter().map(word).collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => {
                "--collectives auto leaves all collectives to the MPI, since none is at least 5 % faster"
                    .to_owned()
            }
            some => format!("--collectives auto has the library's {some}"),
        }
    }
}

impl MeasuredCollective {
    /// As in `Allreduce 8 B`.
    pub fn name(&self) -> String {
        match self.bytes {
            0 => self.operation.clone(),
            bytes => format!("{} {bytes} B", self.operation),
        }
    }
}

fn scaled(value: Quantiles, factor: f64) -> Quantiles {
    let Quantiles { median, low, high, samples } = value;
    Quantiles { median: median * factor, low: low * factor, high: high * factor, samples }
}

/// The library, the ranks and what the line says.
fn parse(line: &str) -> Option<(&str, u32, Line)> {
    if line.chars().any(|letter| letter.is_control() && letter != '\t') {
        return None;
    }
    let (is_measured, rest) = line.strip_prefix("measured ").map_or((false, line), |rest| (true, rest));
    let numbers = if is_measured { 12 } else { 3 };
    let mut words = rest.splitn(numbers + 2, ' ');
    let operation = words.next().filter(|word| OPERATIONS.contains(word))?.to_owned();
    let numbers: Option<Vec<u64>> = words.by_ref().take(numbers).map(|word| word.parse().ok()).collect();
    let library = words.next().filter(|library| !library.trim().is_empty())?;
    let small = |number: u64| u32::try_from(number).ok();
    let ranks = |number: u64| small(number).filter(|ranks| (2..=MOST_RANKS).contains(ranks));
    let bytes = |number: u64| small(number).filter(|bytes| *bytes <= LARGEST);
    match numbers?[..] {
        [from, to, most] if from == to => Some((library, ranks(from)?, Line::Pays(operation, bytes(most)?))),
        [of, size, rounds, ref times @ ..] => {
            let samples = usize::try_from(rounds).ok()?;
            let value = |at: usize| {
                let [low, median, high] = *times.get(at..at + 3)? else { return None };
                let [low, median, high] = (low <= median && median <= high)
                    .then(|| [low, median, high].map(|millionths| millionths as f64 / 1e6))?;
                Some(Quantiles { median, low, high, samples })
            };
            let (theirs, own, ratio) = (value(0)?, value(3)?, value(6)?);
            let collective = MeasuredCollective { operation, bytes: bytes(size)?, theirs, own, ratio };
            Some((library, ranks(of)?, Line::Measured(collective)))
        }
        _ => None,
    }
}

/// Keeps what was measured in the table of this machine. Returns the file.
pub fn keep_collectives(topology: &Topology, jobs: &MeasuredJobs) -> io::Result<PathBuf> {
    let older = kept::collectives_table(topology).map(|(_, text)| text).unwrap_or_default();
    kept::keep_collectives_table(topology, &jobs.table(&older))
}

/// The table of this machine; `None` if nothing was measured.
pub fn collectives_table(topology: &Topology) -> Option<PathBuf> {
    kept::collectives_table(topology).map(|(path, _)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(library: &str, ranks: u32) -> String {
        format!(
            "measured Barrier {ranks} 0 51 100000 200000 300000 40000 90000 95000 300000 450000 500000 {library}\n\
             Barrier {ranks} {ranks} 0 {library}\n\
             measured Bcast {ranks} 8 51 1 2 3 1 2 3 900000 960000 990000 {library}\n"
        )
    }

    #[test]
    fn lines_of_ranks_are_results() {
        let found = MeasuredJobs::parse(&lines("Open MPI v5.0.11", 2));
        assert_eq!((found.jobs.len(), found.refusal.as_deref()), (1, None));
        let job = &found.jobs[0];
        assert_eq!((job.mpi().as_str(), job.ranks, job.collectives.len()), ("Open MPI v5.0.11", 2, 2));
        let barrier = &job.collectives[0];
        assert_eq!((barrier.theirs.median, barrier.own.low, barrier.ratio.median), (0.2, 0.04, 0.45));
        assert_eq!((job.is_used(barrier), job.is_used(&job.collectives[1])), (true, false));
        assert_eq!(job.conclusion(), "--collectives auto has the library's Barrier");
        assert!(job.missing().unwrap().starts_with("11 of 13 "));
        let result = found.result();
        assert_eq!(result.tables.len(), 2);
        assert_eq!(result.tables[1].values().next().unwrap().2.median, 45.0);
        assert!(
            result.remarks[0].contains("Open MPI v5.0.11, 2 ranks: --collectives auto has"),
            "{result:?}"
        );
        let mpich = MeasuredJobs::parse(&lines("MPICH Version:\t4.0.2", 8));
        assert_eq!(mpich.jobs[0].mpi(), "MPICH 4.0.2");
    }

    #[test]
    fn wrong_lines_are_nothing_and_a_refusal_is_said() {
        let right = lines("M 1", 2);
        for (part, wrong) in [
            ("Barrier 2 2", "Gather 2 2"),
            ("Barrier 2 2", "Barrier 2 8"),
            ("Barrier 2 2", "Barrier 1 1"),
            ("Barrier 2 2 0", "Barrier 2 2 9999"),
            ("measured Bcast 2 8 51 1 2 3", "measured Bcast 2 8 51 1 0 3"),
            ("measured Bcast 2 8 51 1 2 3", "measured Bcast 2 8 51 1 2 -3"),
            ("measured Bcast 2 8 51 1 2 3", "measured Bcast 2 8 51 1 2"),
        ] {
            let text = right.replace(part, wrong);
            assert_ne!(text, right);
            let found = MeasuredJobs::parse(&text);
            assert_eq!(found.jobs[0].lines.len(), 2, "{wrong}");
        }
        assert_eq!(MeasuredJobs::parse("Barrier 2 2 0 \n\u{1b}[2J\n").jobs, []);
        let refused = MeasuredJobs::parse("refused first\u{7}\nrefused second\n");
        assert_eq!(refused.refusal.as_deref(), Some("first"));
    }

    #[test]
    fn a_table_has_what_was_measured_last() {
        let old = lines("M 1", 2) + &lines("M 1", 4) + "something else\n";
        let again = lines("M 1", 4).replace("Barrier 4 4 0 M 1\n", "");
        assert_eq!(MeasuredJobs::parse(&again).table(&old), again.clone() + &lines("M 1", 2));
        assert_eq!(MeasuredJobs::parse(&again).table(""), again);
        let many: String = (2..40).map(|ranks| lines("M 1", ranks)).collect();
        let mut table = MeasuredJobs::parse(&lines("N 1", 2)).table(&many);
        assert_eq!(MeasuredJobs::parse(&table).jobs.len(), 1 + MOST_JOBS_OF_MPI);
        for mpi in 0..MOST_JOBS as u32 {
            table = MeasuredJobs::parse(&lines(&format!("{mpi} {}", "x".repeat(150)), 2)).table(&table);
        }
        assert_eq!(MeasuredJobs::parse(&table).jobs.len(), MOST_JOBS);
        assert!(MOST_JOBS * MOST_LINES * MOST_LINE <= 3 * 65536 && table.len() < 65536, "{}", table.len());
    }
}
