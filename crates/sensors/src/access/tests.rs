use super::*;
use crate::{SampleSource, Target};
use numakit_sampling::{Losses, Method, MethodError, MethodEvent, MethodKind, Sample};
use numakit_sys::SysRoot;
use numakit_testing::until;

/// A method that delivers one sample at each call.
#[derive(Debug)]
struct Made {
    landing: Landing,
    left: u32,
}

impl Method for Made {
    fn kind(&self) -> MethodKind {
        MethodKind::Perf
    }

    fn drain(&mut self, take: &mut dyn FnMut(MethodEvent<'_>)) -> Result<u64, MethodError> {
        if self.left == 0 {
            return Ok(0);
        }
        self.left -= 1;
        let process = std::process::id();
        let sample =
            Sample { process, thread: process, cpu: Some(0), weight: 5_000_000, ..Sample::default() };
        take(MethodEvent::Sample(&sample));
        // Those of the kernel are no use of memory.
        take(MethodEvent::Sample(&Sample { in_kernel: true, ..sample }));
        Ok(1)
    }

    fn losses(&self) -> Losses {
        Losses { overflowed: 3, ..Losses::default() }
    }

    fn landing(&self) -> Landing {
        self.landing
    }
}

fn topology(nodes: usize) -> numakit_model::Topology {
    numakit_topology::synthetic::parse(&format!("node:{nodes} core:1 pu:1")).unwrap()
}

fn opened(nodes: usize, landing: Landing) -> (Box<dyn Sensor>, Target) {
    let target = Target::awaited().sampled(SampleSource::new(Ok(landing)));
    let (root, topology) = (SysRoot::host(), topology(nodes));
    (probe(&Scene::new(&root, &topology).observing(Some(&target))).unwrap(), target)
}

fn names(sensor: &dyn Sensor) -> Vec<String> {
    sensor.series().iter().map(Series::name).collect()
}

#[test]
fn time_and_traffic_are_never_shown_together() {
    let (precise, _) = opened(4, Landing::Behind);
    let names_of_time = names(&*precise);
    assert_eq!(names_of_time.len(), 8 * 4 + 2 + 5 * 16);
    assert!(names_of_time.contains(&"access.stack@pair3.0".to_owned()));
    assert!(!names_of_time.iter().any(|name| name.contains("pages")));
    let (block, _) = opened(4, Landing::BlockStart);
    let mut expected: Vec<String> = ["samples", "pages_near", "pages_far"]
        .iter()
        .flat_map(|name| (0..4).map(move |node| format!("access.{name}@node{node}")))
        .collect();
    expected.extend(["access.lost".to_owned(), "access.observer_cpu".to_owned()]);
    expected.extend((0..16).map(|pair| format!("access.pages@pair{}.{}", pair / 4, pair % 4)));
    assert_eq!(names(&*block), expected);
    let reasons: Vec<&str> = block.absent().iter().map(|absent| absent.why.seen.as_str()).collect();
    assert!(reasons.iter().all(|seen| seen.contains("start of a block")), "{reasons:?}");
}

#[test]
fn large_machines_have_no_pairs_and_small_ones_no_far_memory() {
    let (large, _) = opened(32, Landing::Behind);
    assert_eq!(large.series().len(), 8 * 32 + 2);
    let (middle, _) = opened(12, Landing::Behind);
    assert_eq!(middle.series().len(), 8 * 12 + 2 + 144);
    let (small, _) = opened(1, Landing::Behind);
    let expected = [
        "access.near@node0",
        "access.unknown@node0",
        "access.contended@node0",
        "access.cached@node0",
        "access.computing@node0",
        "access.samples@node0",
        "access.clusters@node0",
        "access.lost",
        "access.observer_cpu",
    ];
    assert_eq!(names(&*small), expected);
    assert!(
        small
            .absent()
            .iter()
            .all(|absent| absent.why.seen.contains("one node") || absent.metric.name.contains("pages"))
    );
}

#[test]
fn without_samples_there_is_a_reason() {
    let (root, topology) = (SysRoot::host(), topology(2));
    let scene = Scene::new(&root, &topology);
    let seen = |target: Option<&Target>| probe(&scene.observing(target)).err().unwrap().seen;
    assert_eq!(seen(None), "no process is observed");
    assert_eq!(seen(Some(&Target::awaited())), "no samples are taken");
    let refused = Unavailable::new(MISSING, "refused", Fix::command("permit"));
    assert_eq!(seen(Some(&Target::awaited().sampled(SampleSource::new(Err(refused))))), "refused");
    assert!(
        seen(Some(&Target::awaited().sampled(SampleSource::new(Ok(Landing::Other)))))
            .contains("no particular instruction")
    );
}

#[test]
fn samples_become_values_and_the_last_ones_are_shown_at_the_end() {
    let (mut sensor, target) = opened(1, Landing::Behind);
    let places: Vec<String> = names(&*sensor);
    let at = |name: &str| places.iter().position(|known| known == name).unwrap();
    let mut row = vec![None; places.len()];
    sensor.read(&Tick::default(), &mut row);
    assert!(row.iter().all(Option::is_none), "{row:?}");
    target.samples().unwrap().attach(Box::new(Made { landing: Landing::Behind, left: 7 }));
    // The observer looks several times before it knows the process.
    std::thread::sleep(Duration::from_millis(30));
    target.started(std::process::id());
    let mut samples = 0;
    until!({
        sensor.settle();
        row.fill(None);
        sensor.read(&Tick::default(), &mut row);
        samples = row[at("access.samples@node0")].unwrap_or(samples);
        samples == 7
    });
    // There is no code at address 0: the sample is of nothing known, and certainly not computing.
    let unknown = row[at("access.unknown@node0")].unwrap_or_default();
    let computing = row[at("access.computing@node0")].unwrap_or_default();
    assert_eq!(unknown + computing, 7 * 5_000_000);
    assert!(row[at("access.lost")] >= Some(3));
}
