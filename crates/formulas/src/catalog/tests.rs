use super::*;

fn known(name: &str) -> Option<(Unit, Kind)> {
    Some(match name {
        "m.bytes" => (Unit::Kibibytes, Kind::Gauge),
        "m.sent" => (Unit::Bytes, Kind::COUNTER),
        "m.hits" => (Unit::Count, Kind::COUNTER),
        "m.pages" => (Unit::Pages, Kind::COUNTER),
        "m.time" => (Unit::Nanoseconds, Kind::COUNTER),
        "m.clock" => (Unit::Cycles, Kind::COUNTER),
        _ => return None,
    })
}

fn add(text: &str) -> Result<Catalog, FormulaError> {
    let mut catalog = Catalog::default();
    catalog.add(text, "my.txt", &known).map(|()| catalog)
}

fn error(text: &str) -> String {
    add(text).unwrap_err().to_string()
}

#[test]
fn the_built_in_file_is_right() {
    let mut catalog = Catalog::default();
    catalog.add(FORMULAS, BUILT_IN, &|_| None).unwrap();
    assert!(catalog.all().len() > 30);
    assert!(catalog.all().iter().all(|f| f.is_built_in() && !f.help.is_empty()));
}

#[test]
fn units_that_fit_are_taken() {
    let fitting = "
        used: bytes = m.bytes + 64KiB
        speed: bytes/s = m.sent + m.hits * 64B + m.pages
        moved: count/s = m.pages / 1page
        busy: percent = 100 * m.time
        wait: ns = 1e9 * m.clock / m.hits / m.clock
        per_cycle: ratio = m.hits / m.clock
        rest: count/s = max(m.hits - m.unknown?, 0)
        part: percent = share(m.sent, speed)
        full: percent = 100 * speed / topology.read_bandwidth
        either: percent = share(m.sent, speed) | 100 * m.hits / m.clock | m.unknown
        mean_of: ratio = mean(m.clock) * 1s
        took: seconds = m.bytes / m.sent";
    add(&fitting.replace("\n        ", "\n")).unwrap();
}

#[test]
fn an_error_names_the_parts_whose_units_differ() {
    for (text, expected) in [
        (
            "a: bytes = m.bytes + m.hits",
            "my.txt, line 1: a: m.bytes is bytes and m.hits is count/s: these cannot be added or subtracted; \
             convert one with * or /",
        ),
        (
            "a: bytes = (m.bytes | m.hits)",
            "my.txt, line 1: a: it gives count/s, but says bytes; declare what it gives, or change the formula",
        ),
        ("a: bytes = 2 * (m.bytes | m.hits)", "these cannot be alternatives"),
        ("a: bytes = max(m.bytes, 5)", "m.bytes is bytes and 5 is count: these cannot be compared"),
        ("a: percent = share(m.bytes, m.sent)", "m.sent is bytes/s: these cannot be compared"),
        ("a: count = m.hits", "it gives count/s, but says count"),
        ("b: count/s = m.hits\na: bytes/s = m.sent + b", "line 2: a: m.sent is bytes/s and b is count/s"),
        ("a: count/s = m.hits + m.clock", "m.hits is count/s and m.clock is cycles/s"),
    ] {
        assert!(error(text).contains(expected), "{text}: {}", error(text));
    }
}

#[test]
fn names_must_be_known() {
    for (text, expected) in [
        (
            "abc: count = abd",
            "line 1: abc: unknown formula 'abd', nearest: abc; a metric has a dot in its name",
        ),
        ("a: count = topology.cpu", "unknown fact 'topology.cpu', nearest: topology.cpus"),
        (
            "a: count = b\nb: count = c?\nc: count = 2 * b",
            "line 1: a: b needs c needs b; a formula cannot need itself",
        ),
        ("a: count = 1\na: count = 2", "line 2: a is already defined in line 1; remove one"),
    ] {
        assert!(error(text).contains(expected), "{text}: {}", error(text));
    }
}

#[test]
fn formulas_that_are_too_large_are_refused() {
    let chain = |count: usize, next: &dyn Fn(usize) -> String| {
        let steps = (1..count).map(|n| format!("f{n}: count = {}\n", next(n - 1)));
        format!("f0: count = 1\n{}", steps.collect::<String>())
    };
    add(&chain(60, &|n| format!("1 + f{n}"))).unwrap_err();
    add(&chain(40, &|n| format!("1 + f{n}"))).unwrap();
    assert!(
        error(&chain(40, &|n| format!("f{n} + f{n}"))).contains("too large with the formulas that it uses")
    );
    let backwards: String = (0..5000).map(|n| format!("f{n}: count = f{}\n", n + 1)).collect();
    assert!(error(&format!("{backwards}f5000: count = 1")).contains("deep"));
}

#[test]
fn a_formula_replaces_another_and_says_so() {
    let mut catalog = add("a: count/s = m.hits\nb: count/s = 2 * a").unwrap();
    catalog.add("a: count/s = 3 * m.hits\nc: bytes = m.bytes", "/etc/more.txt", &known).unwrap();
    let a = catalog.get("a").unwrap();
    assert_eq!((a.origin.as_str(), a.replaces.as_deref()), ("/etc/more.txt", Some("my.txt")));
    assert_eq!(catalog.all().iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(catalog.names(catalog.get("b").unwrap()), ["m.hits"]);
    let before = catalog.all().to_vec();
    let wrong = catalog.add("d: count = 1\na: bytes = m.bytes", "wrong.txt", &known).unwrap_err();
    assert!(wrong.to_string().contains("my.txt, line 2: b: it gives bytes, but says count/s"), "{wrong}");
    assert_eq!(catalog.all(), before, "nothing is added when something is wrong");
    assert_eq!(catalog.nearest("bb"), ["b"]);
}
