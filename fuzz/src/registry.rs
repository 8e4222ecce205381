//! What all users of a machine may write: who holds cores, and how many one may hold.

use numakit_registry::limits::{self, Person, Whom};
use numakit_registry::record::{self, HEADER, MAX_CPUS, Parsed, RECORD};

/// The file of the registry: a header, then records. What was read is printed on the terminals of
/// others, and reads the same when it is written again.
pub fn metadata(input: &[u8]) {
    let (header, records) = input.split_at(input.len().min(HEADER));
    if let Some(chooser) = record::chooser(header) {
        assert!(!chooser.name.chars().any(char::is_control));
    }
    // Anything may stand where a record begins, also with a sum that fits.
    let sealed = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes.resize(RECORD, 0);
        record::seal(&mut bytes);
        bytes
    };
    let sealed = records.chunks(RECORD).map(sealed).collect::<Vec<_>>();
    for bytes in records.chunks(RECORD).chain(sealed.iter().map(Vec::as_slice)).chain([input, header]) {
        let Parsed::Record(one) = record::parse(bytes) else { continue };
        assert!(one.cpus.last().is_none_or(|last| last < MAX_CPUS));
        let texts = [Some(&one.who.application), one.who.cgroup.as_ref(), one.who.job.as_ref()];
        assert!(texts.into_iter().flatten().all(|text| !text.chars().any(char::is_control)));
        assert_eq!(record::parse(&one.bytes()), Parsed::Record(one));
    }
}

/// The file of limits: a rule is of the line that it says, and counts for whom it names.
pub fn limits(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lines = text.lines().count();
    match limits::parse(&text) {
        Ok(rules) => {
            assert!(rules.iter().all(|rule| (1..=lines).contains(&rule.line)));
            for rule in &rules {
                let is_in = |group: &str| rule.whom == Whom::Group(group.to_owned());
                let (id, name) = match &rule.whom {
                    Whom::Id(id) => (*id, None),
                    Whom::User(name) => (1, Some(name.as_str())),
                    _ => (1, None),
                };
                let person = Person { id, name, is_in: &is_in };
                assert!(limits::rule_for(&rules, &person).is_some());
            }
        }
        Err((line, problem)) => assert!((1..=lines).contains(&line) && !problem.is_empty()),
    }
}
