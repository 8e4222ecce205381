//! The columns of a recording as other programs see them: types, units, kinds and descriptions.

use crate::arrow;
use crate::header::Header;
use numakit_model::{Metric, Series};

/// Columns before the series.
pub(crate) const FIXED: [&str; 3] = ["time", "took", "label"];

/// A column.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    pub name: String,
    pub column_type: ColumnType,
    /// Whether every row has a value.
    pub always: bool,
    pub unit: String,
    pub kind: &'a str,
    pub help: &'a str,
}

/// The type of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ColumnType {
    /// ns since 1970, UTC.
    Times,
    /// All other numbers are signed, so that the difference of two falling values is negative in
    /// programs that know nothing of counters. The 64 bits are those of the sensor: a value of 2^63
    /// or more, which no kernel counter reaches, is negative elsewhere and unchanged here.
    Integers,
    Floats,
    Texts,
}

/// The columns of a recording.
pub(crate) fn recorded(header: &Header) -> Vec<Column<'_>> {
    let series = header.series.iter();
    all(series.map(|series| described(series.name(), Some(series), false)))
}

/// The schema of a table made from a recording, as an Arrow message: the three columns
/// before the series, then one each by its name and whether its values are floats.
pub fn schema_message(header: &Header, columns: &[(String, bool)]) -> Vec<u8> {
    let series = header.series.iter().map(Some).chain(std::iter::repeat(None));
    let named = columns.iter().zip(series);
    let columns = all(named.map(|((name, floats), series)| described(name.clone(), series, *floats)));
    arrow::encoded(&columns, header, false)
}

fn all<'a>(series: impl Iterator<Item = Column<'a>>) -> Vec<Column<'a>> {
    let fixed = |index: usize, column_type, unit: &str, kind, help| Column {
        name: FIXED[index].to_owned(),
        column_type,
        always: column_type != ColumnType::Texts,
        unit: unit.to_owned(),
        kind,
        help,
    };
    let mut columns = vec![
        fixed(0, ColumnType::Times, "", "", "Start of the acquisition."),
        fixed(1, ColumnType::Integers, "ns", "gauge", "Length of the acquisition."),
        fixed(2, ColumnType::Texts, "", "", "A label, in a row of its own."),
    ];
    columns.extend(series);
    columns
}

/// A column of floats contains rates of counters.
fn described(name: String, series: Option<&Series>, floats: bool) -> Column<'_> {
    let metric: Option<&Metric> = series.map(|series| &*series.metric);
    let unit = metric.map(|metric| metric.unit.name()).unwrap_or_default();
    let kind = metric.map(|metric| metric.kind.name()).unwrap_or_default();
    Column {
        name,
        column_type: if floats { ColumnType::Floats } else { ColumnType::Integers },
        always: false,
        unit: if floats { format!("{unit}/s") } else { unit.to_owned() },
        kind: if floats { "rate" } else { kind },
        help: metric.map(|metric| metric.help.as_str()).unwrap_or_default(),
    }
}
