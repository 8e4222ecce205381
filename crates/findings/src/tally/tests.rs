use super::*;
use numakit_model::Unit;
use numakit_recording::rates::difference;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// A row: the time since the one before, and a value for each of the three series; or a label.
type Row = (u64, [Option<u64>; 3], Option<&'static str>);

fn series() -> Vec<Series> {
    let of = |(name, kind): (&str, Kind)| {
        let metric = Metric {
            name: name.into(),
            unit: Unit::Count,
            kind,
            scope: Instance::Machine.scope(),
            help: String::new(),
            source: String::new(),
            resolution: Duration::ZERO,
            confidence: None,
            maximum: None,
        };
        Series::new(&Arc::new(metric), Instance::Machine)
    };
    [("test.counter", Kind::Counter { bits: 32 }), ("test.level", Kind::Gauge), ("test.rate", Kind::Rate)]
        .map(of)
        .into()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let step = prop_oneof![8 => (1..60u64).prop_map(|ms| ms * MS), 1 => Just(0), 1 => 1..999u64];
    let value = || prop_oneof![9 => Just(Some(7u64)), 1 => Just(None), 3 => (0..1u64 << 40).prop_map(Some)];
    let rate = prop_oneof![3 => value(), 1 => Just(Some(-5i64 as u64))];
    let values =
        (value().prop_map(|v| v.map(|v| v & 0xffff_ffff)), value(), rate).prop_map(|(a, b, c)| [a, b, c]);
    let label = prop_oneof![
        20 => Just(None),
        1 => Just(Some("phase")),
        1 => Just(Some("numakit:pause")),
        1 => Just(Some("numakit:resume")),
        1 => Just(Some("numakit:command ls")),
        1 => Just(Some("numakit:exit 0")),
    ];
    proptest::collection::vec((step, values, label), 1..80)
}

fn batches(rows: &[Row], cuts: &[usize]) -> Vec<Batch> {
    let mut batches = vec![Batch::empty(3)];
    let (mut time, mut left, mut cuts) =
        (1_000_000_000u64, cuts.first().copied().unwrap_or(1), cuts.iter().cycle());
    for (step, values, label) in rows {
        time += step;
        if left == 0 {
            batches.push(Batch::empty(3));
            left = cuts.next().copied().unwrap_or(1);
        }
        left -= 1;
        let last = batches.len() - 1;
        match label {
            Some(text) => batches[last].push_label(time, *text),
            None => batches[last].push_sample(time, 5, values),
        }
    }
    batches
}

fn tally(batches: &[Batch], phase: Option<&str>) -> Tally {
    let header = Header { series: series(), ..Header::default() };
    let mut tally = Tally::new(&header, phase, Vec::new(), Vec::new());
    batches.iter().for_each(|batch| tally.batch(batch));
    tally
}

/// The sums of the whole recording, row by row.
fn sums(batches: &[Batch]) -> Vec<Option<u64>> {
    let (mut sums, mut last, mut rest, mut before) = (vec![None; 3], [None; 3], [0u128; 3], None::<u64>);
    for batch in batches {
        for row in 0..batch.len() {
            if let Some(text) = &batch.label[row] {
                if text.ends_with("pause") || text.ends_with("resume") {
                    (last, before) = ([None; 3], None);
                }
                continue;
            }
            let time = batch.time[row];
            let elapsed = before.replace(time).map_or(0, |before| time - before);
            for (at, sum) in sums.iter_mut().enumerate() {
                let Some(value) = batch.columns[at].get(row) else { continue };
                let previous: Option<u64> = last[at].replace(value);
                let level = if at == 2 { u64::try_from(value as i64).ok() } else { Some(value) };
                let moved = match at {
                    0 => previous.and_then(|previous| difference(previous, value, 32)),
                    _ if elapsed == 0 => None,
                    _ => level.map(|level| {
                        let product = u128::from(level) * u128::from(elapsed) + rest[at];
                        rest[at] = product % 1_000_000_000;
                        (product / 1_000_000_000) as u64
                    }),
                };
                *sum = moved.map(|moved| sum.unwrap_or(0) + moved).or(*sum);
            }
        }
    }
    sums
}

proptest! {
    #[test]
    fn columns_have_the_sums_of_their_rows(rows in rows(), cuts in proptest::collection::vec(1..40usize, 1..9)) {
        let batches = batches(&rows, &cuts);
        prop_assert_eq!(&tally(&batches, None).phases[0].sums, &sums(&batches));
    }

    #[test]
    fn batches_of_one_row_and_of_many_are_tallied_alike(
        rows in rows(),
        cuts in proptest::collection::vec(1..40usize, 1..9),
        selected: bool,
    ) {
        let phase = selected.then_some("phase");
        let (one, many) = (tally(&batches(&rows, &[1]), phase), tally(&batches(&rows, &cuts), phase));
        let phases = |tally: &Tally| format!("{:?}", tally.phases);
        prop_assert_eq!(phases(&one), phases(&many));
        prop_assert_eq!(format!("{:?}", one.movements), format!("{:?}", many.movements));
        prop_assert_eq!(format!("{:?}", one.spreads), format!("{:?}", many.spreads));
        prop_assert_eq!((one.took.total(), one.end), (many.took.total(), many.end));
    }
}
