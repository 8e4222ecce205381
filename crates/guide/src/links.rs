//! Where links of pages lead.

use crate::{Document, document};

/// What a link leads to.
#[derive(Debug)]
pub enum LinkTarget<'a> {
    /// A heading of the same page.
    Heading,
    /// Another document, and a heading of it, if the link names one.
    Document(&'static Document, Option<&'a str>),
    /// Somewhere else.
    Address(&'a str),
}

/// What a link in the page at `from` leads to; `None` if there is no such document.
pub fn resolve<'a>(from: &str, link: &'a str) -> Option<LinkTarget<'a>> {
    if link.contains("://") {
        return Some(LinkTarget::Address(link));
    }
    let (path, heading) = match link.split_once('#') {
        Some(("", _)) => return Some(LinkTarget::Heading),
        Some((path, heading)) => (path, Some(heading)),
        None => (link, None),
    };
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    Some(LinkTarget::Document(document(&parts.join("/"))?, heading))
}

/// The name by which links lead to a heading, as GitHub makes it.
pub fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative_to_their_page() {
        let path = |from, link| match resolve(from, link) {
            Some(LinkTarget::Document(document, heading)) => Some((document.path, heading)),
            _ => None,
        };
        assert_eq!(
            path("docs/guide/run.md", "bench.md#as-a-peak"),
            Some(("docs/guide/bench.md", Some("as-a-peak")))
        );
        assert_eq!(path("docs/guide/run.md", "../README.md"), Some(("docs/README.md", None)));
        assert_eq!(path("docs/guide/run.md", "../../../run.md"), None);
        assert!(matches!(resolve("x", "#here"), Some(LinkTarget::Heading)));
        assert!(matches!(resolve("x", "https://a.b/c.md"), Some(LinkTarget::Address(_))));
    }

    #[test]
    fn anchors_are_those_of_github() {
        assert_eq!(anchor("Who was where, and `numa top`"), "who-was-where-and-numa-top");
        assert_eq!(anchor("NumaConnect2 cards"), "numaconnect2-cards");
    }
}
