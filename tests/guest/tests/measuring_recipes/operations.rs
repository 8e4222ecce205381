//! The machine itself: what `numa doctor` says of its settings, and what timers and huge pages cost here.

use super::followed::Place;

#[test]
fn the_recipe_for_operations_is_followed() {
    let mut place = Place::new("operations").unwrap();
    let blocks = place.follow("operations");
    let printed = |command: &str| {
        let block = blocks.iter().find(|block| block.commands.contains(command));
        block.unwrap_or_else(|| panic!("no {command}")).printed.as_str()
    };
    let doctor = printed("numa doctor --all");
    let mut expected = vec!["timer slack", "power and console"];
    for (about, file) in [
        ("transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("reclaim of memory", "/proc/sys/vm/zone_reclaim_mode"),
    ] {
        match std::path::Path::new(file).exists() {
            true => expected.push(about),
            false => numakit_skips::MACHINE.skip_part(format_args!("there is no {file}")),
        }
    }
    for about in expected {
        assert!(doctor.contains(about), "no {about} in {doctor}");
    }
    let slack = printed("timerslack_ns");
    assert!(slack.lines().any(|line| line.trim() == "1000"), "{slack}");
    let pages = printed("numa run -c 1 --thp on");
    assert!(pages.lines().all(|line| !line.contains("cannot")), "{pages}");
}
