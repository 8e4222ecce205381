//! Columns as the table of a schema. What is the same in many columns is written once.

use crate::columns::{Column, Holds};
use arrow_ipc::{
    Field, FieldArgs, FloatingPointArgs, IntArgs, KeyValue, KeyValueArgs, Precision, SchemaArgs, TimeUnit,
    TimestampArgs, Type, Utf8Args,
};
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, UnionWIPOffset, Vector, WIPOffset};
use std::collections::HashMap;

type Pairs<'b> = WIPOffset<Vector<'b, ForwardsUOffset<KeyValue<'b>>>>;

/// Builds a schema, with a pair of metadata of its own.
pub(super) fn schema<'b>(
    builder: &mut FlatBufferBuilder<'b>,
    columns: &[Column<'_>],
    metadata: (&str, &str),
) -> WIPOffset<UnionWIPOffset> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut shared = Shared::default();
    // Readers of other languages want a list of children, if an empty one.
    let children = Some(builder.create_vector::<WIPOffset<Field<'_>>>(&[]));
    for column in columns {
        let name = Some(builder.create_string(&column.name));
        let (type_type, type_) = shared.type_of(builder, column.holds);
        let custom_metadata = shared.said(builder, column);
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
    types: HashMap<Holds, WIPOffset<UnionWIPOffset>>,
    pairs: HashMap<(&'static str, String), WIPOffset<KeyValue<'b>>>,
    said: HashMap<[String; 3], Pairs<'b>>,
}

impl<'b> Shared<'b> {
    fn type_of(
        &mut self,
        builder: &mut FlatBufferBuilder<'b>,
        holds: Holds,
    ) -> (Type, WIPOffset<UnionWIPOffset>) {
        let kind = match holds {
            Holds::Times => Type::Timestamp,
            Holds::Integers => Type::Int,
            Holds::Floats => Type::FloatingPoint,
            Holds::Texts => Type::Utf8,
        };
        let made = *self.types.entry(holds).or_insert_with(|| match holds {
            Holds::Times => {
                let args = TimestampArgs {
                    unit: TimeUnit::NANOSECOND,
                    timezone: Some(builder.create_string("UTC")),
                };
                arrow_ipc::Timestamp::create(builder, &args).as_union_value()
            }
            Holds::Integers => {
                arrow_ipc::Int::create(builder, &IntArgs { bitWidth: 64, is_signed: true }).as_union_value()
            }
            Holds::Floats => {
                let args = FloatingPointArgs { precision: Precision::DOUBLE };
                arrow_ipc::FloatingPoint::create(builder, &args).as_union_value()
            }
            Holds::Texts => arrow_ipc::Utf8::create(builder, &Utf8Args {}).as_union_value(),
        });
        (kind, made)
    }

    /// Unit, kind and meaning of a column, where it has them.
    fn said(&mut self, builder: &mut FlatBufferBuilder<'b>, column: &Column<'_>) -> Option<Pairs<'b>> {
        let words = [column.unit.clone(), column.kind.to_owned(), column.help.to_owned()];
        if let Some(said) = self.said.get(&words) {
            return Some(*said);
        }
        let mut pairs = Vec::with_capacity(3);
        for (key, word) in
            ["unit", "kind", "help"].into_iter().zip(&words).filter(|(_, word)| !word.is_empty())
        {
            let made = self.pairs.entry((key, word.clone())).or_insert_with(|| pair(builder, key, word));
            pairs.push(*made);
        }
        if pairs.is_empty() {
            return None;
        }
        let said = builder.create_vector(&pairs);
        self.said.insert(words, said);
        Some(said)
    }
}

fn pair<'b>(builder: &mut FlatBufferBuilder<'b>, key: &str, value: &str) -> WIPOffset<KeyValue<'b>> {
    let (key, value) = (Some(builder.create_shared_string(key)), Some(builder.create_string(value)));
    KeyValue::create(builder, &KeyValueArgs { key, value })
}
