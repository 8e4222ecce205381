use super::*;
use crate::code::CodeName;
use proptest::prelude::*;

fn block(line: u32) -> ObjectOrigin {
    ObjectOrigin::Allocated { by: "malloc", site: line.into(), callers: None }
}

fn mapping() -> ObjectOrigin {
    ObjectOrigin::Mapping { name: "heap".into() }
}

fn name(timeline: &ObjectTimeline, address: u64, time: u64) -> Option<String> {
    Some(timeline.row(timeline.find(address, time)?)?.origin.to_string())
}

#[test]
fn blocks_are_named_by_the_code_that_calls() {
    let fill = |file: Option<&str>, function: Option<&str>| CodeName {
        function: function.map(str::to_owned),
        module: "program".into(),
        file: file.map(str::to_owned),
        line: file.map(|_| 3),
    };
    let of = |code: CodeName| {
        block(0x41).named(|address| {
            assert_eq!(address, 0x40, "the call is before the address to which it returns");
            code
        })
    };
    assert_eq!(of(fill(Some("fill.c"), Some("fill"))), "malloc in fill (fill.c:3)");
    assert_eq!(of(fill(None, Some("fill"))), "malloc in fill");
    assert_eq!(of(fill(None, None)), "malloc in program");
    assert_eq!(mapping().named(|_| CodeName::default()), "heap");
}

#[test]
fn an_address_that_is_used_again_belongs_to_the_object_of_the_time() {
    let mut timeline = ObjectTimeline::new(100);
    timeline.add(100..200, 10, &block(1));
    assert!(timeline.free(100, 20));
    assert!(!timeline.free(100, 21));
    timeline.add(150..300, 30, &block(2));
    let seen: Vec<_> = [9, 10, 19, 20, 29, 30].map(|time| name(&timeline, 160, time)).into_iter().collect();
    let (first, second) = (Some("malloc at 0x1".into()), Some("malloc at 0x2".into()));
    assert_eq!(seen, [None, first.clone(), first, None, None, second]);
}

#[test]
fn the_innermost_object_is_found_and_the_outer_one_around_it() {
    let mut timeline = ObjectTimeline::new(100);
    timeline.add(0..1000, 0, &mapping());
    timeline.add(500..1000, 1, &ObjectOrigin::Stack { is_first: false });
    timeline.add(900..1000, 1, &ObjectOrigin::ThreadLocal { name: None });
    timeline.add(100..200, 1, &block(1));
    let names: Vec<_> = [50, 150, 600, 950].iter().filter_map(|at| name(&timeline, *at, 1)).collect();
    let expected = ["heap", "malloc at 0x1", "stacks of the other threads", "thread-local storage"];
    assert_eq!(names, expected);
    timeline.unmap(&(150..1000), 5);
    let names: Vec<_> = [50, 120, 160, 950].map(|at| name(&timeline, at, 5)).into_iter().collect();
    let left = Some("malloc at 0x1".into());
    assert_eq!(names, [Some("heap".into()), left, None, None]);
}

#[test]
fn an_event_that_is_late_counts_as_at_the_last_one() {
    let mut timeline = ObjectTimeline::new(3);
    timeline.add(0..10, 5, &block(1));
    timeline.free(0, 6);
    timeline.add(0..10, 5, &block(2));
    let lines: Vec<_> = [5, 6].map(|time| name(&timeline, 0, time)).into_iter().flatten().collect();
    assert_eq!(lines, ["malloc at 0x1", "malloc at 0x2"]);
}

#[test]
fn blocks_of_one_line_are_one_row() {
    let mut timeline = ObjectTimeline::new(1000);
    for number in 0..100 {
        timeline.add(number * 64..number * 64 + 64, number, &block(1));
    }
    (0..90).for_each(|number| assert!(timeline.free(number * 64, 200)));
    let rows: Vec<_> = timeline.rows().map(|(_, row)| (row.pieces, row.bytes, row.max_bytes)).collect();
    assert_eq!(rows, [(100, 640, 6400)]);
}

#[test]
fn beyond_the_limit_what_ended_first_goes_first_and_is_counted() {
    let mut timeline = ObjectTimeline::new(2);
    timeline.add(0..10, 0, &block(1));
    timeline.free(0, 1);
    timeline.add(0..10, 2, &block(1));
    timeline.add(10..20, 3, &block(1));
    assert_eq!((timeline.find(5, 0), timeline.find(5, 2).is_some()), (None, true));
    assert_eq!(timeline.add(20..30, 4, &block(1)), None);
    assert_eq!(timeline.losses(), TimelineLosses { dropped: 1, dropped_until: Some(1), refused: 1 });
}

#[test]
fn ten_thousand_addresses_are_found_at_the_ends_of_memory_too() {
    let mut timeline = ObjectTimeline::new(20_000);
    for number in 0..10_000 {
        let start = number * 4096;
        timeline.add(start..start + 1 + number % 4096, 0, &block(number as u32));
    }
    timeline.add(u64::MAX - 5..u64::MAX, 0, &mapping());
    for number in 0..10_000 {
        let found = timeline.find(number * 4096 + number % 4096, 9).and_then(|object| timeline.row(object));
        assert_eq!(found.map(|row| &row.origin), Some(&block(number as u32)));
    }
    assert!(timeline.find(u64::MAX - 1, 0).is_some() && timeline.find(u64::MAX, 0).is_none());
}

proptest! {
    /// A table with the owner of each address at each time answers the same.
    #[test]
    fn it_finds_what_a_table_of_all_times_finds(
        steps in prop::collection::vec((0u8..4, 0u64..60, 1u64..30, 0u32..4), 1..60),
    ) {
        let mut timeline = ObjectTimeline::new(10_000);
        let mut now = [[None; 90]; 2];
        let mut past = Vec::new();
        for (time, (what, start, length, line)) in steps.into_iter().enumerate() {
            let (range, time) = (start..start + length, time as u64);
            let cells = start as usize..(start + length) as usize;
            match what {
                0 => now[0][cells].fill(timeline.add(range, time, &mapping())),
                1 | 2 => now[1][cells].fill(timeline.add(range, time, &block(line))),
                _ => {
                    timeline.unmap(&range, time);
                    now.iter_mut().for_each(|layer| layer[cells.clone()].fill(None));
                }
            }
            past.push(now);
        }
        for (time, [outer, inner]) in past.iter().enumerate() {
            for address in 0..90 {
                let expected = inner[address].or(outer[address]);
                prop_assert_eq!(timeline.find(address as u64, time as u64), expected);
            }
        }
    }
}
