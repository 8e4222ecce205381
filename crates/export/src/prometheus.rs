//! The Prometheus text format without timestamps: the last value of every series, as in a scrape
//! and for node_exporter's textfile collector and `promtool check metrics`.

use crate::openmetrics::{Dialect, families, latest};
use crate::{ExportError, ExportFormat, ExportOptions, ExportOutput, ExportSource, ExportedValues};

/// Line of the table of formats.
pub const FORMAT: ExportFormat = ExportFormat {
    name: "prometheus",
    help: "Prometheus text without timestamps: the last sample, for node_exporter's textfile collector",
    extension: "prom",
    binary: false,
    judges: false,
    values: &[ExportedValues::Raw, ExportedValues::Rates],
    write,
};

fn write(
    source: &mut ExportSource,
    options: ExportOptions,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let families = families(&source.header(), options.values);
    let latest = latest(source, options.values)?;
    let value = |series: usize| latest.get(series).copied().flatten();
    families.write(Dialect::Prometheus, |series| value(series).map(|(number, _)| (number, None)), to)?;
    to.flush()?;
    let note = "the format prometheus has only the last sample; --to openmetrics --all writes every sample";
    Ok(options.all.then(|| note.to_owned()).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch, one, text};
    use numakit_model::{Instance, Kind, Unit};

    #[test]
    fn counters_are_described_under_the_name_of_their_samples_without_timestamps() {
        let series = [
            one("cpu.user", Kind::COUNTER, Unit::Ticks, Instance::Cpu(0)),
            one("node.HugePages_Total", Kind::Gauge, Unit::Count, Instance::Node(1)),
        ];
        let rows = batch(&[(1_000_000_000, &[Some(100), Some(1)]), (2_000_000_000, &[Some(250), Some(2)])]);
        let help = "Something \"odd\"\\nof two lines.";
        let expected = format!(
            "# HELP numakit_cpu_user_seconds_total {help}\n\
             # TYPE numakit_cpu_user_seconds_total counter\n\
             numakit_cpu_user_seconds_total{{host=\"h 1\",cpu=\"0\"}} 2.5\n\
             # HELP numakit_node_huge_pages {help}\n\
             # TYPE numakit_node_huge_pages gauge\n\
             numakit_node_huge_pages{{host=\"h 1\",node=\"1\"}} 2\n"
        );
        assert_eq!(
            text("prometheus", ExportedValues::Raw, false, &series, std::slice::from_ref(&rows)),
            expected
        );
        let rates = text("prometheus", ExportedValues::Rates, false, &series, &[rows]);
        assert!(rates.contains("# TYPE numakit_cpu_user_seconds_per_second gauge\n"), "{rates}");
    }
}
