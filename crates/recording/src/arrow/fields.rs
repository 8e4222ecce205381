//! Columns as the table of a schema. Values that many columns share are written once.

use crate::columns::{Column, ColumnType};
use arrow_ipc::{
    Field, FieldArgs, FloatingPointArgs, IntArgs, KeyValue, KeyValueArgs, Precision, SchemaArgs, TimeUnit,
    TimestampArgs, Type, Utf8Args,
};
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, UnionWIPOffset, Vector, WIPOffset};
use std::collections::HashMap;

type Pairs<'b> = WIPOffset<Vector<'b, ForwardsUOffset<KeyValue<'b>>>>;

/// Builds a schema with one pair of metadata.
pub(super) fn schema<'b>(
    builder: &mut FlatBufferBuilder<'b>,
    columns: &[Column<'_>],
    metadata: (&str, &str),
) -> WIPOffset<UnionWIPOffset> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut shared = Shared::default();
    // Some readers need a list of children, even if it is empty.
    let children = Some(builder.create_vector::<WIPOffset<Field<'_>>>(&[]));
    for column in columns {
        let name = Some(builder.create_string(&column.name));
        let (type_type, type_) = shared.type_of(builder, column.column_type);
        let custom_metadata = shared.metadata(builder, column);
        let nullable = !column.always;
        let args = FieldArgs {
            name,
            nullable,
            type_type,
            type_: Some(type_),
            dictionary: None,
            children,
            custom_metadata,
        };
        fields.push(Field::create(builder, &args));
    }
    let fields = Some(builder.create_vector(&fields));
    let pair = pair(builder, metadata.0, metadata.1);
    let custom_metadata = Some(builder.create_vector(&[pair]));
    let args = SchemaArgs { fields, custom_metadata, ..SchemaArgs::default() };
    arrow_ipc::Schema::create(builder, &args).as_union_value()
}

#[derive(Default)]
struct Shared<'b> {
    types: HashMap<ColumnType, WIPOffset<UnionWIPOffset>>,
    pairs: HashMap<(&'static str, String), WIPOffset<KeyValue<'b>>>,
    metadata: HashMap<[String; 3], Pairs<'b>>,
}

impl<'b> Shared<'b> {
    fn type_of(
        &mut self,
        builder: &mut FlatBufferBuilder<'b>,
        column_type: ColumnType,
    ) -> (Type, WIPOffset<UnionWIPOffset>) {
        let kind = match column_type {
            ColumnType::Times => Type::Timestamp,
            ColumnType::Integers => Type::Int,
            ColumnType::Floats => Type::FloatingPoint,
            ColumnType::Texts => Type::Utf8,
        };
        let offset = *self.types.entry(column_type).or_insert_with(|| match column_type {
            ColumnType::Times => {
                let args = TimestampArgs {
                    unit: TimeUnit::NANOSECOND,
                    timezone: Some(builder.create_string("UTC")),
                };
                arrow_ipc::Timestamp::create(builder, &args).as_union_value()
            }
            ColumnType::Integers => {
                arrow_ipc::Int::create(builder, &IntArgs { bitWidth: 64, is_signed: true }).as_union_value()
            }
            ColumnType::Floats => {
                let args = FloatingPointArgs { precision: Precision::DOUBLE };
                arrow_ipc::FloatingPoint::create(builder, &args).as_union_value()
            }
            ColumnType::Texts => arrow_ipc::Utf8::create(builder, &Utf8Args {}).as_union_value(),
        });
        (kind, offset)
    }

    /// Unit, kind and description of a column, if it has them.
    fn metadata(&mut self, builder: &mut FlatBufferBuilder<'b>, column: &Column<'_>) -> Option<Pairs<'b>> {
        let words = [column.unit.clone(), column.kind.to_owned(), column.help.to_owned()];
        if let Some(pairs) = self.metadata.get(&words) {
            return Some(*pairs);
        }
        let mut pairs = Vec::with_capacity(3);
        for (key, word) in
            ["unit", "kind", "help"].into_iter().zip(&words).filter(|(_, word)| !word.is_empty())
        {
            let offset = self.pairs.entry((key, word.clone())).or_insert_with(|| pair(builder, key, word));
            pairs.push(*offset);
        }
        if pairs.is_empty() {
            return None;
        }
        let pairs = builder.create_vector(&pairs);
        self.metadata.insert(words, pairs);
        Some(pairs)
    }
}

fn pair<'b>(builder: &mut FlatBufferBuilder<'b>, key: &str, value: &str) -> WIPOffset<KeyValue<'b>> {
    let (key, value) = (Some(builder.create_shared_string(key)), Some(builder.create_string(value)));
    KeyValue::create(builder, &KeyValueArgs { key, value })
}
