use super::packets::*;
use super::*;
use crate::testing::{batch, exported, series};
use numakit_model::Kind;

/// Fields of a message: number and content.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => {
                let value = varint(&mut bytes);
                fields.push((tag >> 3, value.to_le_bytes().to_vec()));
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes) as usize,
            other => panic!("wire type {other}"),
        };
        let (content, rest) = bytes.split_at(length);
        fields.push((tag >> 3, content.to_vec()));
        bytes = rest;
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().position(|b| *b < 0x80).unwrap() + 1;
    let (number, rest) = bytes.split_at(length);
    *bytes = rest;
    number.iter().rev().fold(0, |sum, b| sum << 7 | u64::from(b & 0x7f))
}

fn get(fields: &[(u64, Vec<u8>)], number: u64) -> Option<&[u8]> {
    fields.iter().find(|(n, _)| *n == number).map(|(_, content)| &content[..])
}

fn word(fields: &[(u64, Vec<u8>)], number: u64) -> Option<u64> {
    get(fields, number).map(|content| u64::from_le_bytes(content.try_into().unwrap()))
}

/// Time, track and value (integer or bits of a double) of every counter event.
fn events(values: ExportedValues, rows: &[(u64, &[Option<u64>])]) -> Vec<(u64, u64, u64)> {
    let series = series(&[("a.c", Kind::COUNTER), ("a.g", Kind::Gauge), ("a.r", Kind::Rate)]);
    let trace = exported("perfetto", values, false, &series, &[batch(rows)]);
    let packets = fields(&trace).into_iter().map(|(_, packet)| fields(&packet));
    let event = |packet: Vec<(u64, Vec<u8>)>| {
        assert_eq!(word(&packet, TRUSTED_PACKET_SEQUENCE_ID), Some(SEQUENCE));
        let event = fields(get(&packet, TRACK_EVENT)?);
        assert_eq!(word(&packet, TIMESTAMP_CLOCK_ID), Some(REALTIME));
        let value = word(&event, 30).or(word(&event, 44))?;
        Some((word(&packet, TIMESTAMP)?, word(&event, 11)?, value))
    };
    packets.filter_map(event).collect()
}

const S: u64 = 1_000_000_000;

#[test]
fn a_rate_is_at_the_start_of_its_interval() {
    let none = &[None, None, None];
    let events = events(
        ExportedValues::Rates,
        &[
            (S, &[Some(10), Some(7), Some(-1i64 as u64)]),
            (2 * S, &[Some(12), Some(7), None]),
            (3 * S, none),
            (4 * S, &[Some(12), Some(8), Some(4)]),
        ],
    );
    let expected = [
        (S, 4, 7),
        (S, 5, -1i64 as u64),
        (S, 3, 2f64.to_bits()),
        (2 * S, 3, 0f64.to_bits()),
        (4 * S, 4, 8),
        (4 * S, 5, 4),
        (4 * S, 3, 0f64.to_bits()),
    ];
    assert_eq!(events, expected);
}

#[test]
fn repeated_values_are_left_out_and_large_ones_are_doubles() {
    let rows: Vec<(u64, &[Option<u64>])> =
        vec![(1, &[Some(u64::MAX), Some(7), None]), (2, &[Some(u64::MAX), Some(7), None]), (3, &[None; 3])];
    let max = (u64::MAX as f64).to_bits();
    assert_eq!(events(ExportedValues::Raw, &rows), [(1, 3, max), (1, 4, 7), (2, 3, max), (2, 4, 7)]);
}
