//! The topics of the guide: the lines of its index.

use crate::{Document, INDEX, document, documents};
use std::sync::LazyLock;

/// Topics under one line of the index.
#[derive(Debug, PartialEq, Eq)]
pub struct TopicSection {
    /// Its line, without the colon.
    pub heading: String,
    /// Its topics.
    pub topics: Vec<Topic>,
}

/// A page of the guide, as the index describes it.
#[derive(Debug, PartialEq, Eq)]
pub struct Topic {
    /// The word for it: the name of its file without its ending.
    pub name: String,
    /// The title of its link.
    pub title: String,
    /// What the index says of it.
    pub about: String,
    /// The file.
    pub path: String,
}

impl Topic {
    /// The verbs that the page describes: those that the index names in backquotes.
    pub fn verbs(&self) -> impl Iterator<Item = &str> {
        let quoted = self.about.split('`').skip(1).step_by(2);
        quoted.filter_map(|line| line.strip_prefix("numa ")?.split(' ').next())
    }

    /// The page.
    pub fn document(&self) -> Option<&'static Document> {
        document(&self.path)
    }
}

static SECTIONS: LazyLock<Vec<TopicSection>> = LazyLock::new(|| {
    let index = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/README.md"));
    parse(index)
});

/// All topics, by section.
pub fn sections() -> &'static [TopicSection] {
    &SECTIONS
}

/// All topics.
pub fn topics() -> impl Iterator<Item = &'static Topic> {
    SECTIONS.iter().flat_map(|section| &section.topics)
}

/// The topic that describes a verb: that of the same name, else the first for which the index names the verb.
pub fn of_verb(verb: &str) -> Option<&'static Topic> {
    let names_it = |topic: &&Topic| topic.verbs().any(|described| described == verb);
    topics().filter(names_it).find(|topic| topic.name == verb).or_else(|| topics().find(names_it))
}

/// The page with this name: that of a topic, of a verb, or any file of the repository's documents without its ending.
pub fn page(name: &str) -> Option<&'static Document> {
    let topic = topics().find(|topic| topic.name == name).or_else(|| of_verb(name));
    topic.and_then(Topic::document).or_else(|| documents().iter().find(|document| name_of(document) == name))
}

/// The name by which [`page`] finds a document: that of its topic, else its path without `docs/` and its ending.
pub fn name_of(document: &Document) -> &str {
    let path = document.path.strip_suffix(".md").unwrap_or(document.path);
    let path = path.strip_prefix("docs/").unwrap_or(path);
    path.strip_prefix("guide/").unwrap_or(path)
}

fn parse(index: &str) -> Vec<TopicSection> {
    let mut sections: Vec<TopicSection> = Vec::new();
    for line in index.lines() {
        if let Some(topic) = topic(line) {
            if let Some(section) = sections.last_mut() {
                section.topics.push(topic);
            }
        } else if let Some(heading) = line.strip_prefix("## ").or_else(|| line.strip_suffix(':')) {
            sections.push(TopicSection { heading: heading.to_owned(), topics: Vec::new() });
        }
    }
    sections.retain(|section| !section.topics.is_empty());
    sections
}

/// A line such as ``- [See a machine](guide/topology.md): `numa topo` ``.
fn topic(line: &str) -> Option<Topic> {
    let (title, rest) = line.strip_prefix("- [")?.split_once("](")?;
    let (link, about) = rest.split_once(')')?;
    let name = link.strip_prefix("guide/")?.strip_suffix(".md")?;
    Some(Topic {
        name: name.to_owned(),
        title: title.to_owned(),
        about: about.strip_prefix(": ").unwrap_or(about).to_owned(),
        path: format!("{}{link}", INDEX.trim_end_matches("README.md")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_page_of_the_guide_is_a_topic_and_every_topic_is_a_page() {
        let names: Vec<&str> = topics().map(|topic| topic.name.as_str()).collect();
        let pages = documents().iter().filter(|document| document.is_page());
        let guide: BTreeSet<&str> =
            pages.filter(|document| document.path.starts_with("docs/guide/")).map(name_of).collect();
        assert_eq!(names.iter().copied().collect::<BTreeSet<_>>(), guide);
        assert_eq!(names.len(), guide.len(), "one is listed twice: {names:?}");
        for topic in topics() {
            assert_eq!(page(&topic.name).unwrap().path, topic.path);
            assert!(!topic.title.is_empty() && !topic.about.is_empty(), "{topic:?}");
        }
    }

    #[test]
    fn every_document_has_a_name_of_its_own() {
        for document in documents() {
            assert_eq!(page(name_of(document)).unwrap().path, document.path);
        }
        assert!(page("no-such-topic").is_none());
        // Another page names it too, before.
        assert_eq!(of_verb("explain").unwrap().name, "explain");
    }

    #[test]
    fn the_index_says_which_page_describes_a_verb() {
        let index = "# Documents\n\n## Guide\n\n- [Install](guide/install.md): packages\n\nLook:\n\n\
                     - [See a machine](guide/topology.md): `numa topo`, `numa capture DIR`\n\n## Decisions\n\n- [1](decisions/1.md)\n";
        let sections = parse(index);
        let headings: Vec<&str> = sections.iter().map(|section| section.heading.as_str()).collect();
        assert_eq!(headings, ["Guide", "Look"]);
        let topology = &sections[1].topics[0];
        assert_eq!((topology.name.as_str(), topology.title.as_str()), ("topology", "See a machine"));
        assert_eq!(topology.verbs().collect::<Vec<_>>(), ["topo", "capture"]);
    }
}
