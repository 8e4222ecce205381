//! The columns of a recording as other programs see them: types, units, kinds and what they mean.

use crate::arrow;
use crate::header::Header;
use numakit_model::{Metric, Series};

/// Columns before the series.
pub(crate) const FIXED: [&str; 3] = ["time", "took", "label"];

/// A column.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    pub name: String,
    pub holds: Holds,
    /// Whether every row has a value.
    pub always: bool,
    pub unit: String,
    pub kind: &'a str,
    pub help: &'a str,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Holds {
    /// ns since 1970, UTC.
    Times,
    /// All other numbers are signed, so that the difference of two values that fell is negative in
    /// programs that know nothing of counters. The words are the same 64 bits as the sensor gave:
    /// what is 2^63 or more (no kernel counts so far) shows as negative elsewhere, and here as it
    /// was.
    Integers,
    Floats,
    Texts,
}

/// The columns of a recording.
pub(crate) fn recorded(header: &Header) -> Vec<Column<'_>> {
    let series = header.series.iter();
    all(series.map(|series| described(series.name(), Some(series), false)))
}

/// The schema of a table that was made of a recording, as an Arrow message: the three columns
/// before the series, then one each by its name and whether its values are floats.
pub fn schema_message(header: &Header, columns: &[(String, bool)]) -> Vec<u8> {
    let series = header.series.iter().map(Some).chain(std::iter::repeat(None));
    let named = columns.iter().zip(series);
    let columns = all(named.map(|((name, floats), series)| described(name.clone(), series, *floats)));
    arrow::encoded(&columns, header, false)
}

fn all<'a>(series: impl Iterator<Item = Column<'a>>) -> Vec<Column<'a>> {
    let fixed = |index: usize, holds, unit: &str, kind, help| Column {
        name: FIXED[index].to_owned(),
        holds,
        always: holds != Holds::Texts,
        unit: unit.to_owned(),
        kind,
        help,
    };
    let mut columns = vec![
        fixed(0, Holds::Times, "", "", "Start of the acquisition."),
        fixed(1, Holds::Integers, "ns", "gauge", "Length of the acquisition."),
        fixed(2, Holds::Texts, "", "", "A label, in a row of its own."),
    ];
    columns.extend(series);
    columns
}

/// A column of floats holds rates of counters.
fn described(name: String, series: Option<&Series>, floats: bool) -> Column<'_> {
    let metric: Option<&Metric> = series.map(|series| &*series.metric);
    let unit = metric.map(|metric| metric.unit.name()).unwrap_or_default();
    let kind = metric.map(|metric| metric.kind.name()).unwrap_or_default();
    Column {
        name,
        holds: if floats { Holds::Floats } else { Holds::Integers },
        always: false,
        unit: if floats { format!("{unit}/s") } else { unit.to_owned() },
        kind: if floats { "rate" } else { kind },
        help: metric.map(|metric| metric.help.as_str()).unwrap_or_default(),
    }
}
