//! What a cure does with an object, in words.

use numakit_cure::{Cure, CuredObject, ObjectPart, ObjectPolicy, PartsOver};
use std::collections::BTreeSet;

/// What a cure does with the object of this name; `None` if it does not know the object.
pub fn words(cure: &Cure, name: &str) -> Option<String> {
    let left = || {
        let left = cure.left.iter().find(|left| left.name == name)?;
        Some(format!("none: {}", left.why))
    };
    cure.objects.iter().find(|cured| cured.name == name).map(treatment).or_else(left)
}

fn treatment(CuredObject { policy, pages, .. }: &CuredObject) -> String {
    let policy = Some(policy_words(policy)).filter(|words| !words.is_empty());
    policy.into_iter().chain(super::pages_words(*pages)).collect::<Vec<_>>().join(", ")
}

fn policy_words(policy: &ObjectPolicy) -> String {
    match policy {
        ObjectPolicy::Parts { over, parts } => {
            let threads: BTreeSet<u32> = parts.iter().map(|part| part.thread).collect();
            let of = match (over, threads.first(), threads.len()) {
                (_, Some(thread), 1) => format!("all of it to thread {thread}"),
                (PartsOver::Block, _, count) => format!("parts of {count} threads"),
                (PartsOver::Blocks, _, count) => format!("blocks of {count} threads"),
            };
            format!("{of}, {:.0} % sure", 100.0 * sure(parts))
        }
        ObjectPolicy::Interleave => "interleaved".to_owned(),
        ObjectPolicy::Weighted => "interleaved by the weights of the nodes".to_owned(),
        ObjectPolicy::Near => "blocks of the node that allocates them".to_owned(),
        ObjectPolicy::Padded => "blocks with lines of their own".to_owned(),
        ObjectPolicy::Unchanged => String::new(),
    }
}

/// The share of the samples that are of the threads which have the parts.
fn sure(parts: &[ObjectPart]) -> f64 {
    let (own, all) = parts
        .iter()
        .map(|part| (part.sure * part.samples as f64, part.samples as f64))
        .fold((0.0, 0.0), |(own, all), (of, samples)| (own + of, all + samples));
    own / f64::max(all, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_cure::{CuredIdentity, LeftObject, PageSize, ProgramFile};

    fn cured(policy: ObjectPolicy, pages: PageSize) -> String {
        let module = ProgramFile::default();
        let object = CuredObject {
            name: "table".to_owned(),
            verdict: "first-touch".to_owned(),
            reason: String::new(),
            identity: CuredIdentity::Variable { module, address: 64, bytes: 8 },
            policy,
            pages,
        };
        let left = LeftObject { name: "list".to_owned(), verdict: "chain".to_owned(), why: "why".to_owned() };
        let cure = Cure { objects: vec![object], left: vec![left], ..Cure::default() };
        assert_eq!(words(&cure, "list").as_deref(), Some("none: why"));
        assert_eq!(words(&cure, "other"), None);
        words(&cure, "table").unwrap()
    }

    #[test]
    fn a_cure_says_what_each_object_gets() {
        let part = |from, to, thread, sure| ObjectPart { from, to, thread, samples: 100, sure };
        let parts = |parts| ObjectPolicy::Parts { over: PartsOver::Block, parts };
        let two = parts(vec![part(0, 32, 0, 1.0), part(32, 64, 1, 0.94)]);
        assert_eq!(cured(two.clone(), PageSize::AsItIs), "parts of 2 threads, 97 % sure");
        assert_eq!(cured(two, PageSize::Small), "parts of 2 threads, 97 % sure, small pages");
        let one = parts(vec![part(0, 64, 3, 0.5)]);
        assert_eq!(cured(one, PageSize::AsItIs), "all of it to thread 3, 50 % sure");
        assert_eq!(cured(ObjectPolicy::Unchanged, PageSize::Huge), "huge pages");
        assert_eq!(cured(ObjectPolicy::Interleave, PageSize::AsItIs), "interleaved");
    }
}
