use super::*;
use crate::emitters::HTTP;
use crate::http::Answer;
use crate::target::PushTarget;
use crate::testing::{header, rows};
use destination::meaning;
use proptest::prelude::*;

/// An engine that refuses some values, is down for a while, and keeps what it takes.
#[derive(Debug, Default)]
struct Fake {
    /// Row time and column that are refused.
    bad: Vec<(u64, usize)>,
    /// Tries that fail before one works, at each of these rows.
    down: HashMap<u64, u32>,
    max_rows: usize,
    denies: bool,
    kept: Vec<(u64, usize)>,
}

impl Deliver for Fake {
    fn deliver(&mut self, _: &Arc<Header>, batch: &Batch) -> Delivery {
        if self.denies {
            return Delivery::Denied("status 401".into());
        }
        if batch.len() > self.max_rows {
            return Delivery::Large;
        }
        for time in &batch.time {
            if let Some(left) = self.down.get_mut(time).filter(|left| **left > 0) {
                *left -= 1;
                return Delivery::Down { why: "down".into(), after: Some(Duration::ZERO) };
            }
        }
        let columns = batch.columns.iter().enumerate();
        let cells: Vec<(u64, usize)> = columns
            .flat_map(|(column, cells)| {
                let valid = batch.time.iter().zip(&cells.valid).filter(|(_, valid)| **valid);
                valid.map(move |(time, _)| (*time, column))
            })
            .collect();
        if cells.iter().any(|cell| self.bad.contains(cell)) {
            return Delivery::Refused("field type conflict".into());
        }
        self.kept.extend(cells);
        Delivery::Accepted
    }
}

fn patience() -> Patience {
    Patience { outage: Duration::from_secs(600), stop: Arc::default(), notice: |_| {} }
}

fn counts<D>(sender: &Sender<D>) -> PushCounts {
    sender.counts.lock().unwrap().clone()
}

proptest! {
    #[test]
    fn all_values_arrive_in_order_but_those_that_are_refused(
        bad in proptest::collection::btree_set((0..30u64, 0..4usize), 0..5),
        down in proptest::collection::hash_map(0..30u64, 1..3u32, 0..3),
        max_rows in 1..40usize,
    ) {
        // A series that is refused often is left out: another test.
        let columns: Vec<usize> = bad.iter().map(|(_, column)| *column).collect();
        prop_assume!((0..4).all(|column| columns.iter().filter(|c| **c == column).count() < 3));
        let outages = u64::try_from(down.len()).unwrap();
        let bad: Vec<_> = bad.into_iter().collect();
        let fake = Fake { bad: bad.clone(), down, max_rows, ..Fake::default() };
        let mut sender = Sender::to(fake, patience());
        sender.send(&header(4), &rows(0, 10, 4)).unwrap();
        sender.send(&header(4), &rows(10, 20, 4)).unwrap();
        // Column 1 is never measured.
        let measured = |cell: &(u64, usize)| cell.1 != 1;
        let refused: Vec<_> = bad.iter().filter(|cell| measured(cell)).collect();
        let mut expected: Vec<(u64, usize)> = (0..30).flat_map(|row| (0..4).map(move |c| (row, c))).collect();
        expected.retain(|cell| measured(cell) && !refused.contains(&cell));
        let mut kept = sender.destination.kept.clone();
        kept.sort_unstable();
        prop_assert_eq!(kept, expected);
        for column in 0..4 {
            let times = sender.destination.kept.iter().filter(|cell| cell.1 == column).map(|cell| cell.0);
            prop_assert!(times.is_sorted());
        }
        let counts = counts(&sender);
        prop_assert_eq!((counts.rows, counts.all_refused()), (30, refused.len() as u64));
        prop_assert!(counts.outages <= outages && counts.down.is_none());
    }
}

#[test]
fn a_series_that_is_refused_often_is_left_out_and_counted() {
    let bad = (0..100).map(|time| (time, 2)).collect();
    let mut sender = Sender::to(Fake { bad, max_rows: 100, ..Fake::default() }, patience());
    (0..10).for_each(|at| sender.send(&header(4), &rows(at * 10, 10, 4)).unwrap());
    let counts = counts(&sender);
    assert_eq!((counts.rows, counts.all_refused()), (100, 100), "{counts}");
    assert_eq!(sender.destination.kept.len(), 200);
    // The first rows are halved until the value is alone; those after need one request each.
    assert!(counts.requests < 100, "{counts}");
    assert!(counts.to_string().contains("test.value2: field type conflict"), "{counts}");
}

/// An engine that wants times in order refuses all rows until the clock is where it was; then all series go on.
#[test]
fn a_series_that_is_taken_again_goes_on() {
    let bad = (0..100).filter(|time| time % 10 < 2).map(|time| (time, 2)).collect();
    let mut sender = Sender::to(Fake { bad, max_rows: 100, ..Fake::default() }, patience());
    (0..100).for_each(|at| sender.send(&header(4), &rows(at, 1, 4)).unwrap());
    let taken = sender.destination.kept.iter().filter(|cell| cell.1 == 2).count();
    assert_eq!((taken, counts(&sender).all_refused()), (80, 20));
}

#[test]
fn an_engine_that_refuses_everything_is_not_asked_for_each_value() {
    let bad = (0..1000).flat_map(|time| [(time, 0), (time, 2), (time, 3)]).collect();
    let mut sender = Sender::to(Fake { bad, max_rows: 2000, ..Fake::default() }, patience());
    sender.send(&header(4), &rows(0, 1000, 4)).unwrap();
    let counts = counts(&sender);
    assert_eq!((counts.rows, counts.all_refused()), (1000, 3000), "{counts}");
    assert!(counts.requests < 200, "{counts}");
}

#[test]
fn patience_and_wrong_credentials_end_it() {
    let down = HashMap::from([(0, u32::MAX)]);
    let impatient = Patience { outage: Duration::ZERO, stop: Arc::default(), notice: |_| {} };
    let mut sender = Sender::to(Fake { down, max_rows: 9, ..Fake::default() }, impatient);
    assert_eq!(sender.send(&header(4), &rows(0, 1, 4)), Err(Unsent::Down("down".into())));
    let mut sender = Sender::to(Fake { denies: true, ..Fake::default() }, patience());
    assert_eq!(sender.send(&header(4), &rows(0, 1, 4)), Err(Unsent::Denied("status 401".into())));
    assert_eq!(counts(&sender).rows, 0);
}

#[test]
fn answers_have_one_meaning() {
    let of = |status: u16, body: &'static str| {
        let answer =
            Answer { status, retry_after: Some(Duration::from_secs(7)), body: body.into(), is_whole: true };
        meaning(&answer, &HTTP)
    };
    assert_eq!([of(200, "x"), of(204, "")], [Delivery::Accepted, Delivery::Accepted]);
    assert_eq!(of(413, ""), Delivery::Large);
    assert_eq!(of(400, "a\x1b[31m\n b"), Delivery::Refused("status 400: a [31m b".into()));
    assert_eq!(of(401, ""), Delivery::Denied("status 401; check --password-file or --token-file".into()));
    let fix = "check the port and the path of the address";
    assert_eq!(of(404, ""), Delivery::Denied(format!("status 404; {fix}")), "this one has no databases");
    assert_eq!(of(503, ""), Delivery::Down { why: "status 503".into(), after: Some(Duration::from_secs(7)) });
}

/// It would be tried for an hour otherwise, as an engine that is down.
#[test]
fn an_address_without_an_engine_is_denied_at_once() {
    let deliver = |url: &str| {
        let target = PushTarget::parse(url).unwrap();
        PushDestination::new(&target).unwrap().deliver(&header(1), &rows(0, 1, 1))
    };
    let Delivery::Denied(why) = deliver("questdb+http://no-such-host.invalid:1") else { panic!() };
    assert!(why.starts_with("cannot find the host of no-such-host.invalid:1"), "{why}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            std::io::Write::write_all(&mut stream, b"SSH-2.0-OpenSSH_9.2\r\n").unwrap();
            // Until the client has read it and gone.
            drop(std::io::copy(&mut stream, &mut std::io::sink()));
        }
    });
    let target = PushTarget::parse(&format!("influxdb1+http://{place}?db=numa")).unwrap();
    let mut destination = PushDestination::new(&target).unwrap();
    // A proxy may break one or two answers. A connection may also break before its answer was read.
    let answers = (0..20).map(|_| destination.deliver(&header(1), &rows(0, 1, 1)));
    let mut down = 0;
    let is_down = |answer: &Delivery| matches!(answer, Delivery::Down { .. });
    let denied = answers.inspect(|answer| down += u32::from(is_down(answer))).find(|answer| !is_down(answer));
    let Some(Delivery::Denied(why)) = denied else { panic!("{denied:?} after {down}") };
    assert!(down >= 2 && why.starts_with(&format!("{place} does not speak HTTP")), "{why}");
}

#[test]
fn reasons_are_bounded() {
    let mut counts = PushCounts::default();
    for number in 0..100 {
        counts.refuse(&format!("reason {number} {}", "x".repeat(1000)), 1);
    }
    assert_eq!((counts.refused.len(), counts.all_refused()), (17, 100));
    let mut counts = PushCounts::default();
    (0..100).for_each(|number| counts.refuse_one(&format!("series{number}"), "out of order"));
    assert_eq!((counts.refused.len(), counts.refused["out of order"]), (9, 92));
    assert!(counts.refused.keys().all(|reason| reason.len() < 210));
}
