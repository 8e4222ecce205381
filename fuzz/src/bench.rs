//! Results of `numa bench` from a stranger's file, and what ranks have measured.

use numakit_bench::distances::measured_distances;
use numakit_bench::{BenchResults, MeasuredJobs};
use numakit_findings::comparison::bench::compare;
use numakit_terminal::bench::{BenchStyle, collectives_page, compared, csv, html, page};
use numakit_terminal::topology::measured;

/// Everything that is shown of results that are not refused.
pub fn results(input: &[u8]) -> bool {
    let Ok(results) = BenchResults::parse(input) else { return false };
    let style = BenchStyle { color: true, width: 80, all: true };
    let text = html(&results);
    assert!(!text.contains("<script") && text.matches("</style>").count() == 1, "{text}");
    let values: usize = results.benchmarks.iter().map(|result| result.all().count()).sum();
    assert!(csv(&results).matches("\r\n").count() > values);
    assert!(!page(&results, style).is_empty());
    let same = compare(&results, &results);
    assert!(same.changes.is_empty() && same.only_first.is_empty(), "{same:?}");
    assert!(!compared::text(&same, 10, 80).is_empty());
    if let Some(topology) = &results.topology
        && let Ok(distances) = measured_distances(topology, &results)
    {
        assert!(!measured(topology, &results, &distances, style).is_empty());
    }
    true
}

/// What ranks that measured collectives have written, and the table that is kept of it.
pub fn collectives(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let measured = MeasuredJobs::parse(text);
    let table = measured.table(text);
    assert_eq!(MeasuredJobs::parse(&table).table(""), table);
    let page = collectives_page(&measured);
    assert!(!page.chars().any(|letter| letter.is_control() && letter != '\n'), "{page:?}");
    assert_eq!(measured.result().tables.len(), 2 * measured.jobs.len());
    !measured.jobs.is_empty()
}
