//! The interconnect cards of the simulated machine, and the sensor that reads them.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod recording;

use numakit_guest::programs::figure;
use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, or_skipped, programs};
use recording::Recording;
use std::sync::LazyLock;
use std::time::Duration;

const STOPS: u64 = 10_000;
/// Lines of the streams below.
const LINES: u64 = 64 << 20 >> 6;

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let record = |name: &str, command: &str| {
        format!(
            "numa mark begin; numa record -i 200ms -e 'n2*' -o {name}.arrows -- sh -c '{command}'; numa mark end"
        )
    };
    let (quiet, remote) = (record("quiet", "sleep 4"), record("remote", "sleep 1; stream 0 2 64; sleep 1"));
    let local = record("local", "sleep 1; stream 0 0 64; sleep 1");
    let table = |memory: &str| {
        format!(
            "numa mark begin; numascope -discrete -events n2CachelinesRecv stat \
             sh -c 'for i in 1 2 3 4 5 6; do stream 0 {memory} 64; done'; numa mark end"
        )
    };
    let guest = Guest::new(Shape::named("four")?)
        // Close to the end of 48 bits, so that all counters wrap.
        .simulate(Simulation::new().option("start=281474976700000"))
        .timeout(Duration::from_secs(400))
        .program(&programs::numa()?)
        .program(&programs::compiled("stream")?.unwrap())
        .program(&programs::compiled("card")?.unwrap())
        .step("doctor", &["numa", "doctor", "--all"])
        .step("list", &["numa", "list", "n2*"])
        .step("orders", &["card", &STOPS.to_string()])
        .step("quiet", &["sh", "-c", &quiet])
        .step("remote", &["sh", "-c", &remote])
        .step("local", &["sh", "-c", &local])
        .step("stat-remote", &["sh", "-c", &table("2")])
        .step("stat-local", &["sh", "-c", &table("0")]);
    guest.boot()
});

#[test]
fn orders_are_served_before_the_next_load() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    let text = boot["orders"].succeeded();
    print!("{text}");
    assert!(text.contains(&format!("coherent {STOPS} of {STOPS}\n")), "{text}");
    let [expected, received] = ["lines_expected", "lines_received"].map(|name| figure(&text, name).unwrap());
    assert!(received >= expected && received < 1.1 * expected, "{text}");
}

/// Regions that the steps before this one had: `card` has one, the others one each.
fn region(step: &str) -> Option<&'static Lines> {
    let boot = or_skipped(&BOOT)?;
    boot[step].succeeded();
    let order = ["orders", "quiet", "remote", "local", "stat-remote", "stat-local"];
    boot.traffic.as_ref()?.each.get(order.iter().position(|name| *name == step)?)
}

/// Lines that came to the card of a node: what its CPUs fetched and what others wrote back.
fn received(lines: &Lines, node: usize) -> u64 {
    let others = (0..4).filter(|other| *other != node);
    others.map(|o| lines.fetches[node][o] + lines.transfers[node][o] + lines.writebacks[o][node]).sum()
}

/// A recording that a step left.
fn recorded(name: &str) -> Recording {
    let boot = or_skipped(&BOOT).unwrap();
    Recording::read(&boot.out.join(format!("{name}.arrows")))
}

fn lines_received(recording: &Recording, node: usize) -> u64 {
    recording.grown(&format!("numaconnect2.n2CachelinesRecv@card{node}"), 48)
}

#[test]
fn the_sensor_finds_every_card() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    let doctor = boot["doctor"].text();
    assert!(doctor.contains("ok       numaconnect2: "), "{doctor}");
    let list = boot["list"].succeeded();
    assert_eq!(list.lines().filter(|line| line.starts_with("numaconnect2.n2")).count(), 120, "{list}");
    let Some(_) = region("quiet") else { return };
    assert_eq!(recorded("quiet").names("numaconnect2.n2Cyc@").len(), 4);
}

#[test]
fn cards_agree_with_the_matrix() {
    let (Some(still), Some(lines)) = (region("quiet"), region("remote")) else { return };
    let (quiet, remote) = (recorded("quiet"), recorded("remote"));
    let longer = remote.length() as f64 / quiet.length() as f64;
    println!("card  baseline  received  without baseline  matrix of the quiet  of this  without the quiet");
    for node in 0..4 {
        let (baseline, grown) = (lines_received(&quiet, node) as f64 * longer, lines_received(&remote, node));
        // Regions also have the recorder's start and end, which no card counts.
        let (before, all) = (received(still, node), received(lines, node));
        let (card, matrix) = (grown as f64 - baseline, all as f64 - before as f64);
        println!("{node} {baseline:.0} {grown} {card:.0} {before} {all} {matrix:.0}");
        if [0, 2].contains(&node) {
            // Node 0 reads from node 2, and writes home what it wrote there before.
            assert!(card >= 0.97 * LINES as f64, "card {node}: {card}");
            assert!((card - matrix).abs() < 0.1 * matrix, "card {node}: {card} {matrix}");
        } else {
            // The rest of the system, which does more while the host is busy.
            assert!(card.max(matrix) < 0.15 * LINES as f64, "card {node}: {card} {matrix}");
        }
    }
    let sent = remote.grown("numaconnect2.n2CachelinesSent@card2", 48);
    assert!(sent as f64 > 0.97 * LINES as f64, "{sent}");
}

#[test]
fn a_local_program_leaves_the_cards_alone() {
    let Some(lines) = region("local") else { return };
    let (quiet, remote, local) = (recorded("quiet"), recorded("remote"), recorded("local"));
    let longer = local.length() as f64 / quiet.length() as f64;
    for node in 0..4 {
        let baseline = lines_received(&quiet, node) as f64 * longer;
        let lines = lines_received(&local, node) as f64 - baseline;
        println!("card {node}: {lines:.0} lines without baseline, of {LINES} streamed");
        assert!(lines * 10.0 < lines_received(&remote, 0) as f64, "card {node}: {lines}");
    }
    assert!(lines.fetches[0][0] * 100 > LINES * 97);
}

#[test]
fn the_clock_of_a_card_is_200_mhz() {
    let Some(_) = region("quiet") else { return };
    let quiet = recorded("quiet");
    for node in 0..4 {
        // It stands still while the card is read.
        let cycles = quiet.grown(&format!("numaconnect2.n2Cyc@card{node}"), 48);
        let ratio = cycles as f64 / (quiet.length() as f64 / 5.0);
        println!("card {node}: {ratio:.4} of 200 MHz");
        assert!((0.9..=1.005).contains(&ratio), "{ratio}");
    }
}

/// The largest figure in each column of numascope's table.
fn peaks(text: &str) -> Vec<f64> {
    let rows = text.lines().map(|line| line.split_whitespace().map(number).collect::<Option<Vec<f64>>>());
    let mut peaks: Vec<f64> = Vec::new();
    for row in rows.flatten().filter(|row| row.len() >= 4) {
        peaks.resize(peaks.len().max(row.len()), 0.0);
        peaks.iter_mut().zip(row).for_each(|(peak, value)| *peak = peak.max(value));
    }
    peaks
}

/// `1.05M` and the like.
fn number(word: &str) -> Option<f64> {
    let (digits, factor) = match word.strip_suffix(['k', 'M', 'G']) {
        Some(digits) => (digits, 1000f64.powi(1 + "kMG".find(&word[digits.len()..])? as i32)),
        None => (word, 1.0),
    };
    Some(digits.parse::<f64>().ok()? * factor)
}

#[test]
fn numascope_shows_lines_on_the_right_cards() {
    let (Some(_), Some(_)) = (region("stat-remote"), region("stat-local")) else { return };
    let boot = or_skipped(&BOOT).unwrap();
    let (remote, local) = (boot["stat-remote"].succeeded(), boot["stat-local"].succeeded());
    print!("{remote}{local}");
    let (remote, local) = (peaks(&remote), peaks(&local));
    let [.., first, second, third, fourth] = remote[..] else { panic!("{remote:?}") };
    // What node 0 wrote before goes home to node 2.
    assert!(first > 10.0 * second.max(fourth) && first > third, "{remote:?}");
    assert!(local[local.len() - 4] < first / 10.0, "{local:?}");
}
