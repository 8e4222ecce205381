//! Apache Parquet: `time`, `took`, `label`, then one column per series.
//!
//! The types are those of the recording, rates are doubles; a value that was not measured is a
//! null. The key `numakit` of the metadata has the same JSON as the recording, and
//! `ARROW:schema` the fields with unit, kind and help, which Arrow readers show.

use crate::{
    ExportError, ExportFormat, ExportOptions, ExportOutput, ExportSource, ExportedValues, Number, Numbers,
};
use data_encoding::BASE64;
use numakit_model::Kind;
use numakit_recording::{Batch, Header, schema_message};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

/// Line of the table of formats.
pub const FORMAT: ExportFormat = ExportFormat {
    name: "parquet",
    help: "Apache Parquet: time, took, label, one column per series",
    extension: "parquet",
    binary: true,
    judges: false,
    values: &[ExportedValues::Raw, ExportedValues::Rates],
    write,
};

/// Values of a row group before they are encoded.
const ROW_GROUP: usize = 8 << 20;

fn write(
    source: &mut ExportSource,
    options: ExportOptions,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let header = source.header();
    let mut group = Group::new(&header, options.values, ROW_GROUP);
    let mut writer = SerializedFileWriter::new(to, schema(&group)?, Arc::new(properties(&header, &group)?))?;
    let mut numbers = Numbers::new(&header.series, options.values);
    source.each(|batch| {
        for row in 0..batch.len() {
            group.push(batch, row, &mut numbers);
            if group.is_full() {
                group.flush(&mut writer)?;
            }
        }
        Ok::<_, ExportError>(())
    })?;
    if !group.is_empty() {
        group.flush(&mut writer)?;
    }
    writer.finish()?;
    writer.inner_mut().flush()?;
    Ok(Vec::new())
}

/// The pending rows of a row group.
struct Group {
    columns: Vec<Column>,
    max_rows: usize,
}

/// A column: the measured values, and for each row whether there is one.
struct Column {
    name: String,
    values: Cells,
    /// `None` for a column without nulls.
    valid: Option<Vec<i16>>,
}

enum Cells {
    Time(Vec<i64>),
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl Group {
    fn new(header: &Header, values: ExportedValues, cells: usize) -> Self {
        let fixed = |name: &str, values| Column { name: name.to_owned(), values, valid: None };
        let nulls = |name, values| Column { name, values, valid: Some(Vec::new()) };
        let mut columns = vec![
            fixed("time", Cells::Time(Vec::new())),
            fixed("took", Cells::Integers(Vec::new())),
            nulls("label".to_owned(), Cells::Texts(Vec::new())),
        ];
        columns.extend(header.series.iter().map(|series| {
            let cells = match series.metric.kind {
                kind if values.are_floats(kind) => Cells::Floats(Vec::new()),
                Kind::Rate | Kind::Counter { .. } | Kind::Gauge => Cells::Integers(Vec::new()),
            };
            nulls(series.name(), cells)
        }));
        make_names_unique(&mut columns);
        let max_rows = (cells / columns.len()).max(1);
        Self { columns, max_rows }
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |time| time.values.len())
    }

    fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    fn is_full(&self) -> bool {
        self.rows() >= self.max_rows
    }

    fn push(&mut self, batch: &Batch, row: usize, numbers: &mut Numbers) {
        let [time, took, label, series @ ..] = &mut self.columns[..] else { return };
        time.push(Some(Number::Unsigned(batch.time[row])));
        took.push(Some(Number::Unsigned(batch.took[row])));
        let text = batch.label[row].as_deref();
        label.push_text(text);
        if text.is_some() {
            series.iter_mut().for_each(|column| column.push(None));
            return;
        }
        for (column, number) in series.iter_mut().zip(numbers.row(batch, row)) {
            column.push(*number);
        }
    }

    fn flush(&mut self, to: &mut SerializedFileWriter<ExportOutput<'_>>) -> Result<(), ExportError> {
        let mut group = to.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            column.flush(writer.untyped())?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }
}

impl Column {
    fn push(&mut self, number: Option<Number>) {
        if let Some(valid) = &mut self.valid {
            valid.push(i16::from(number.is_some()));
        }
        match (&mut self.values, number) {
            (Cells::Floats(cells), Some(number)) => cells.push(number.float()),
            (Cells::Time(cells) | Cells::Integers(cells), Some(number)) => {
                cells.push(match number {
                    Number::Unsigned(word) => word as i64,
                    Number::Signed(value) => value,
                    Number::Float(value) => value as i64,
                });
            }
            (Cells::Texts(_), _) | (_, None) => {}
        }
    }

    fn push_text(&mut self, text: Option<&str>) {
        if let Some(valid) = &mut self.valid {
            valid.push(i16::from(text.is_some()));
        }
        if let (Cells::Texts(cells), Some(text)) = (&mut self.values, text) {
            cells.push(text.into());
        }
    }

    fn flush(&mut self, to: &mut ColumnWriter<'_>) -> Result<(), ExportError> {
        let valid = self.valid.as_deref();
        match (to, &mut self.values) {
            (ColumnWriter::Int64ColumnWriter(to), Cells::Time(cells) | Cells::Integers(cells)) => {
                to.write_batch(cells, valid, None)?;
                cells.clear();
            }
            (ColumnWriter::DoubleColumnWriter(to), Cells::Floats(cells)) => {
                to.write_batch(cells, valid, None)?;
                cells.clear();
            }
            (ColumnWriter::ByteArrayColumnWriter(to), Cells::Texts(cells)) => {
                to.write_batch(cells, valid, None)?;
                cells.clear();
            }
            _ => return Err(ExportError::Parquet(format!("'{}' has another type", self.name))),
        }
        if let Some(valid) = &mut self.valid {
            valid.clear();
        }
        Ok(())
    }

    fn field(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match &self.values {
            Cells::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
            Cells::Integers(_) => (Physical::INT64, Some(LogicalType::integer(64, true))),
            Cells::Floats(_) => (Physical::DOUBLE, None),
            Cells::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if self.valid.is_some() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(&self.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Self::Time(cells) | Self::Integers(cells) => cells.len(),
            Self::Floats(cells) => cells.len(),
            Self::Texts(cells) => cells.len(),
        }
    }
}

/// A duplicate name gets a number: encodings are selected by name, and readers need
/// unique names.
fn make_names_unique(columns: &mut [Column]) {
    let mut names = HashSet::new();
    for column in columns {
        let name = column.name.clone();
        let mut copy = 1;
        while !names.insert(column.name.clone()) {
            copy += 1;
            column.name = format!("{name}_{copy}");
        }
    }
}

fn schema(group: &Group) -> Result<Arc<Type>, ParquetError> {
    let fields = group.columns.iter().map(|c| c.field().map(Arc::new)).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("recording").with_fields(fields).build()?))
}

fn arrow_schema(header: &Header, group: &Group) -> String {
    let series = group.columns.iter().skip(3);
    let columns: Vec<(String, bool)> =
        series.map(|column| (column.name.clone(), matches!(column.values, Cells::Floats(_)))).collect();
    BASE64.encode(&schema_message(header, &columns))
}

/// Counters grow slowly, so their differences are stored; rates and labels repeat.
fn properties(header: &Header, group: &Group) -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("numakit version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_key_value_metadata(Some(vec![
            KeyValue::new("numakit".to_owned(), header.metadata()),
            KeyValue::new("ARROW:schema".to_owned(), arrow_schema(header, group)),
        ]));
    for column in &group.columns {
        if matches!(column.values, Cells::Time(_) | Cells::Integers(_)) {
            let path = ColumnPath::new(vec![column.name.clone()]);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}

impl From<ParquetError> for ExportError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(io) => Self::Output(*io),
                Err(inner) => Self::Parquet(inner.to_string()),
            },
            other => Self::Parquet(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
