//! Files that several users may write: the registry and the limits.

use numakit_launch::limits::{self, LimitSubject, LimitedUser};
use numakit_registry::record::{self, HEADER, MAX_CPUS, Parsed, RECORD};

/// The file of the registry: a header, then records. Names are printed on terminals of other users,
/// so they have no control characters. A record that is written again reads the same.
pub fn metadata(input: &[u8]) -> bool {
    let (header, records) = input.split_at(input.len().min(HEADER));
    if let Some(owner) = record::lock_owner(header) {
        assert!(!owner.name.chars().any(char::is_control));
    }
    // Any bytes may be in the place of a record, also with a valid checksum.
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
        let texts = [Some(&one.holder.application), one.holder.cgroup.as_ref(), one.holder.job.as_ref()];
        assert!(texts.into_iter().flatten().all(|text| !text.chars().any(char::is_control)));
        assert_eq!(record::parse(&one.bytes()), Parsed::Record(one));
    }
    records.chunks(RECORD).any(|bytes| matches!(record::parse(bytes), Parsed::Record(_)))
}

/// The file of limits: a rule has the number of its line, and applies to the user that it names.
pub fn limits(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let lines = text.lines().count();
    match limits::parse(&text) {
        Ok(rules) => {
            assert!(rules.iter().all(|rule| (1..=lines).contains(&rule.line)));
            for rule in &rules {
                let is_member = |group: &str| rule.subject == LimitSubject::Group(group.to_owned());
                let (id, name) = match &rule.subject {
                    LimitSubject::Id(id) => (*id, None),
                    LimitSubject::User(name) => (1, Some(name.as_str())),
                    _ => (1, None),
                };
                let person = LimitedUser { id, name, is_member: &is_member };
                assert!(limits::rule_for(&rules, &person).is_some());
            }
        }
        Err((line, problem)) => {
            assert!((1..=lines).contains(&line) && !problem.is_empty());
            return false;
        }
    }
    true
}
