//! `environ`: the initial environment of a program.

use std::borrow::Cow;

/// `NAME=value`, each ended by a zero byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables(Vec<u8>);

impl Variables {
    /// Variables in these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order; a word without `=` is skipped.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        self.0.split(|&byte| byte == 0).filter_map(|word| {
            let equals = word.iter().position(|&byte| byte == b'=')?;
            Some((String::from_utf8_lossy(&word[..equals]), String::from_utf8_lossy(&word[equals + 1..])))
        })
    }

    /// The value of the first variable of this name.
    pub fn get(&self, name: &str) -> Option<Cow<'_, str>> {
        self.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_end_at_zeros_and_names_at_the_first_equals_sign() {
        let variables = Variables::new(b"A=1\0B=x=y\0nothing\0A=2\0=\0C=\xff\0".to_vec());
        assert_eq!(variables.iter().count(), 5);
        assert_eq!((variables.get("A").as_deref(), variables.get("B").as_deref()), (Some("1"), Some("x=y")));
        assert_eq!((variables.get("C").as_deref(), variables.get("nothing")), (Some("\u{fffd}"), None));
        assert!(Variables::default().is_empty() && Variables::default().get("").is_none());
    }
}
