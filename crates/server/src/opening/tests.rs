use super::*;
use crate::listen_options::ListenOptions;
use crate::queue::{Outgoing, Queue};
use crate::wire::Role;
use crate::{AccessKeys, testing};
use numakit_recording::Recorder;
use numakit_testing::until;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const ROWS: u64 = 3000;
/// Rows that are read in several parts.
const LARGE: u64 = 50_000;

/// The recordings `a.arrows` and `b.arrows` in their own folder, and a hub.
struct Fixture {
    folder: PathBuf,
    files: Vec<PathBuf>,
    hub: Hub,
    formulas: Arc<Catalog>,
}

impl Fixture {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("numakit-opening-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let files = vec![folder.join("a.arrows"), folder.join("b.arrows")];
        files.iter().for_each(|file| record(file, ROWS));
        let access =
            AccessKeys::new("127.0.0.1:7077".parse().unwrap(), "here", &ListenOptions::default()).unwrap();
        Self { folder, files, hub: Hub::new(access, 16 << 20, None), formulas: Arc::default() }
    }

    fn enter(&self) -> Arc<Queue> {
        self.hub.enter(Role::Viewer, HERE).unwrap()
    }

    fn open(&self, progress: Progress<'_>) -> Result<(), RecordingError> {
        open_all(&self.hub, &self.files, &self.formulas, &AtomicBool::new(false), progress)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn record(path: &Path, rows: u64) {
    let recorder = Recorder::create(path, &testing::header(&["test.a"]), false).unwrap();
    until!(recorder.ring().push_label(0, "begin"));
    for row in 1..=rows {
        until!({
            recorder.ring().push(row * 1_000_000, 0, &[Some(row)]);
            recorder.ring().take_dropped() == 0
        });
    }
    recorder.finish().unwrap();
}

/// The messages to a client, and the reason of its end.
fn messages(hub: &Hub, queue: &Queue) -> (Vec<Value>, String) {
    hub.close("the test ended");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut found = Vec::new();
    loop {
        match runtime.block_on(queue.next()) {
            Outgoing::Text(text) => found.push(serde_json::from_str(&text).unwrap()),
            Outgoing::End(reason) => return (found, reason),
            other => panic!("{other:?}"),
        }
    }
}

/// File names and percentages of an `opening`, as in `a 0, b 0`.
fn words(message: &Value) -> String {
    let one = |one: &Value| {
        let file = Path::new(one["name"].as_str().unwrap()).file_stem().unwrap().to_str().unwrap().to_owned();
        format!("{file} {}", one["percent"])
    };
    message["opening"].as_array().unwrap().iter().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn clients_are_told_what_is_being_opened_until_it_is_a_source() {
    let fixture = Fixture::new("order");
    let first = fixture.enter();
    let mut later = Vec::new();
    let mut told = Vec::new();
    let mut progress = |opening: Option<&OpeningInfo>| {
        let Some(opening) = opening else { return };
        let refusal = fixture.hub.source(2).err().unwrap().to_string();
        assert!(refusal.starts_with("source 2 does not exist yet: ") && refusal.contains(&opening.name));
        told.push(opening.clone());
        later.push(fixture.enter());
    };
    fixture.open(&mut progress).unwrap();
    let count = |file: &str| told.iter().filter(|one| one.name.ends_with(file)).count();
    assert!(count("a.arrows") > 0 && count("b.arrows") > 0, "{told:?}");
    assert!(told.iter().all(|one| one.percent <= 100));
    assert!(told.windows(2).all(|two| two[0].name != two[1].name || two[0].percent < two[1].percent));

    let (all, _) = messages(&fixture.hub, &first);
    let order: Vec<String> = all
        .iter()
        .filter_map(|message| match message["type"].as_str().unwrap() {
            "opening" => Some(words(message)),
            "source" => Some(format!("source {}", message["source"]["id"])),
            "hello" => Some(format!("hello: {}", words(message))),
            _ => None,
        })
        .collect();
    let at =
        |what: &str| order.iter().position(|one| one == what).unwrap_or_else(|| panic!("{what}: {order:?}"));
    assert_eq!(order[..2], ["hello: ", "a 0, b 0"]);
    assert!(at("source 0") < at("b 0") && at("b 0") < at("source 1"), "{order:?}");
    assert_eq!(order.last().unwrap(), "");
    // A client that comes meanwhile hears of it in its first message.
    let (all, _) = messages(&fixture.hub, &later[0]);
    assert_eq!((words(&all[0]).as_str(), all[0]["sources"].as_array().unwrap().len()), ("a 0, b 0", 0));
    let (all, _) = messages(&fixture.hub, later.last().unwrap());
    assert!(words(&all[0]).starts_with("b ") && all[0]["sources"][0]["id"] == 0, "{}", all[0]);
}

/// A recording that is read in several parts.
fn record_large(path: &Path) {
    let names: Vec<String> = (0..24).map(|at| format!("test.m{at}")).collect();
    let header = testing::header(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let recorder = Recorder::create(path, &header, false).unwrap();
    let mut random = 88_172_645_463_325_252u64;
    for row in 1..=LARGE {
        let values: Vec<Option<u64>> = (0..24)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                Some(random)
            })
            .collect();
        until!({
            recorder.ring().push(row * 1_000_000, 0, &values);
            recorder.ring().take_dropped() == 0
        });
    }
    recorder.finish().unwrap();
}

#[test]
fn a_part_is_a_source_until_all_was_read() {
    let fixture = Fixture::new("part");
    let (hub, file) = (&fixture.hub, fixture.folder.join("c.arrows"));
    record_large(&file);
    let client = fixture.enter();
    let mut parts = Parts::new(hub);
    let mut look = |opened: &PartlyOpened<'_>| {
        parts.next = Instant::now();
        parts.show(opened);
        if let Some(id) = parts.id.filter(|_| opened.percent() < 100) {
            let percent = opened.percent();
            assert_eq!((id, hub.source(id).unwrap().info.read_percent), (0, Some(percent)));
            let refusal = hub.whole_source(id).err().unwrap().to_string();
            assert!(refusal.starts_with(&format!("{percent} % of c was read so far")), "{refusal}");
        }
        ControlFlow::Continue(())
    };
    let opened = recordings::read_while(&file, "c", hub.budget, &fixture.formulas, &mut look);
    assert_eq!(recordings::put(hub, parts.id, opened.unwrap().unwrap()).unwrap(), 0);
    assert_eq!(hub.whole_source(0).unwrap().data.span(), Some((1_000_000, LARGE * 1_000_000)));

    let (all, _) = messages(hub, &client);
    let sources: Vec<&Value> =
        all.iter().map(|message| &message["source"]).filter(|s| s.is_object()).collect();
    let (last, before) = sources.split_last().unwrap();
    assert!(last["read_percent"].is_null() && before.len() > 1, "{sources:?}");
    assert!(before.iter().map(|source| source["read_percent"].as_u64().unwrap()).is_sorted());
    assert!(sources.iter().all(|source| source["id"] == 0 && source["ended_ns"] == last["ended_ns"]));
}

#[test]
fn a_recording_that_was_sent_takes_no_number_of_one_that_is_being_opened() {
    let fixture = Fixture::new("sent");
    let send = || recordings::open_sent(&fixture.hub, &fixture.files[1], "sent", &fixture.formulas);
    let mut refusals = Vec::new();
    let mut progress = |opening: Option<&OpeningInfo>| {
        if opening.is_some() {
            refusals.push(send().unwrap_err().to_string());
        }
    };
    fixture.open(&mut progress).unwrap();
    assert!(!refusals.is_empty());
    assert!(refusals.iter().all(|why| why.contains(".arrows") && why.contains("opened")), "{refusals:?}");
    assert_eq!(send().unwrap(), 2, "after the two of the command line");
    let name = |id: u32| fixture.hub.source(id).unwrap().info.name.clone();
    assert!(name(0).ends_with("a.arrows") && name(1).ends_with("b.arrows") && name(2) == "sent");
}

#[test]
fn a_recording_that_fails_later_ends_all_clients_with_the_reason() {
    let fixture = Fixture::new("fails");
    let client = fixture.enter();
    let mut progress = |_: Option<&OpeningInfo>| drop(std::fs::remove_file(&fixture.files[1]));
    let error = fixture.open(&mut progress).unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("b.arrows"), "{error}");
    assert_eq!(messages(&fixture.hub, &client).1, error);
}

#[test]
fn damage_in_the_middle_is_said_to_every_client() {
    let fixture = Fixture::new("damaged");
    let mut bytes = std::fs::read(&fixture.files[0]).unwrap();
    let middle = bytes.len() * 2 / 3;
    bytes[middle..middle + 64].fill(0xa5);
    std::fs::write(&fixture.files[0], bytes).unwrap();
    fixture.open(&mut |_| ()).unwrap();
    let (all, _) = messages(&fixture.hub, &fixture.enter());
    let notices: Vec<&str> = all.iter().filter_map(|m| m["text"].as_str()).collect();
    assert!(notices.len() == 1 && notices[0].contains("a.arrows is damaged: "), "{notices:?}");
}

#[test]
fn opening_ends_when_it_is_told_to() {
    let fixture = Fixture::new("stops");
    let stop = AtomicBool::new(false);
    let mut progress = |_: Option<&OpeningInfo>| stop.store(true, Ordering::Relaxed);
    open_all(&fixture.hub, &fixture.files, &fixture.formulas, &stop, &mut progress).unwrap();
    assert!(fixture.hub.source(0).is_err());
    // Dropping an opener waits for its thread.
    let Fixture { folder, files, hub, formulas } = &fixture;
    let hub = Arc::new(Hub::new(
        AccessKeys::new("127.0.0.1:7077".parse().unwrap(), "here", &ListenOptions::default()).unwrap(),
        hub.budget,
        None,
    ));
    drop(Opener::start(Arc::clone(&hub), files.clone(), Arc::clone(formulas), |_| ()).unwrap());
    assert_eq!(Arc::strong_count(&hub), 1, "{}", folder.display());
}

#[test]
fn files_that_cannot_be_shown_are_refused_before_they_are_read() {
    let fixture = Fixture::new("refused");
    check(&fixture.files).unwrap();
    let refusal =
        |file: &str| check(&[fixture.files[0].clone(), fixture.folder.join(file)]).unwrap_err().to_string();
    assert!(refusal("none.arrows").contains("cannot read"));
    std::fs::write(fixture.folder.join("text"), "no recording").unwrap();
    assert!(refusal("text").contains("is not a recording"));
    record(&fixture.folder.join("empty.arrows"), 0);
    assert!(refusal("empty.arrows").ends_with("has no samples; record some with 'numa record'"));
    let many = vec![fixture.files[0].clone(); SOURCES + 1];
    assert!(check(&many).unwrap_err().to_string().contains("the limit of 8 sources"));
}
