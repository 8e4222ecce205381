//! The instance of a series as name and value of a tag or label.

use numakit_model::Instance;

/// `("node", "3")`; `None` for the machine.
pub fn instance_label(instance: Instance) -> Option<(String, String)> {
    let text = instance.to_string();
    let text = text.strip_prefix('@')?;
    let (word, number) = text.split_at(text.find(|c: char| c.is_ascii_digit())?);
    Some((word.to_owned(), number.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_a_word_and_a_number() {
        let of = |instance| instance_label(instance).map(|(word, number)| format!("{word} {number}"));
        assert_eq!(of(Instance::Machine), None);
        assert_eq!(of(Instance::Node(3)).as_deref(), Some("node 3"));
        assert_eq!(of(Instance::Link(0, 11)).as_deref(), Some("link 0.11"));
        assert_eq!(of(Instance::Task(4711)).as_deref(), Some("pid 4711"));
    }
}
