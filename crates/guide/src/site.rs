//! The guide as a web site: pages whose links are relative, so that any folder of any server can hold it.

use crate::links::{self, LinkTarget, anchor};
use crate::{Document, INDEX, documents, topics};
use pulldown_cmark::{Alignment, CowStr, Event, Options, Parser, Tag, TagEnd, html};
use std::fmt::Write;

/// A file of the site.
#[derive(Debug)]
pub struct SiteFile {
    /// Its path, such as `explain.html`.
    pub path: String,
    /// For `Content-Type`.
    pub kind: &'static str,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// The first page.
pub const FIRST: &str = "index.html";

const STYLE: &str = "guide.css";
const STYLE_CONTENT: &[u8] = include_bytes!("site/guide.css");

/// All files of the site.
pub fn files() -> Vec<SiteFile> {
    documents().iter().map(of).chain([style()]).collect()
}

/// The file with this path.
pub fn file(path: &str) -> Option<SiteFile> {
    if path == STYLE {
        return Some(style());
    }
    documents().iter().find(|document| path_of(document) == path).map(of)
}

fn style() -> SiteFile {
    SiteFile { path: STYLE.to_owned(), kind: "text/css; charset=utf-8", content: STYLE_CONTENT.to_vec() }
}

/// The path of a document in the site: its path in the repository without `docs/` and `guide/`.
pub fn path_of(document: &Document) -> String {
    match (document.path, document.is_page()) {
        (INDEX, _) => FIRST.to_owned(),
        (_, true) => format!("{}.html", topics::name_of(document)),
        (_, false) => topics::name_of(document).to_owned(),
    }
}

fn of(document: &Document) -> SiteFile {
    let path = path_of(document);
    if document.is_page() {
        let content = page(document, &path).into_bytes();
        return SiteFile { path, kind: "text/html; charset=utf-8", content };
    }
    let kind = match path.rsplit('.').next() {
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    };
    SiteFile { path, kind, content: document.content() }
}

/// A page with the list of all pages beside it.
fn page(document: &Document, path: &str) -> String {
    let markdown = document.markdown();
    let title = markdown.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path).replace('`', "");
    let top = "../".repeat(path.matches('/').count());
    let mut body = String::new();
    html::push_html(&mut body, events(document, &markdown, &top).into_iter());
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - numakit</title>\n<link rel=\"stylesheet\" href=\"{top}{STYLE}\">\n<body>\n",
        escaped(&title)
    );
    page.push_str(&navigation(document, &top));
    // Writing to a string cannot fail.
    let _ = write!(page, "<main>\n{body}</main>\n</body>\n</html>\n");
    page
}

fn navigation(shown: &Document, top: &str) -> String {
    let mut list = format!("<nav>\n<p><a href=\"{top}{FIRST}\">numakit</a></p>\n");
    for section in topics::sections() {
        // Writing to a string cannot fail.
        let _ = write!(list, "<h2>{}</h2>\n<ul>\n", escaped(&section.heading));
        for topic in &section.topics {
            let here = if topic.path == shown.path { " aria-current=\"page\"" } else { "" };
            let _ = writeln!(
                list,
                "<li><a href=\"{top}{}.html\"{here}>{}</a></li>",
                topic.name,
                escaped(&topic.title)
            );
        }
        list.push_str("</ul>\n");
    }
    list + "</nav>\n"
}

/// The events of a page, with addresses of the site, and with names of headings.
fn events<'a>(document: &Document, markdown: &'a str, top: &str) -> Vec<Event<'a>> {
    let mut events: Vec<Event<'a>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
    let mut heading = None;
    let mut text = String::new();
    for at in 0..events.len() {
        match &mut events[at] {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                *dest_url = address(document, dest_url, top).into();
            }
            // It would be an attribute `style`, which the server's policy forbids.
            Event::Start(Tag::Table(alignments)) => alignments.fill(Alignment::None),
            Event::Start(Tag::Heading { .. }) => {
                heading = Some(at);
                text.clear();
            }
            Event::Text(part) | Event::Code(part) => text.push_str(part),
            Event::End(TagEnd::Heading(_)) => {
                if let Some(Event::Start(Tag::Heading { id, .. })) = heading.and_then(|at| events.get_mut(at))
                {
                    *id = Some(CowStr::from(anchor(&text)));
                }
            }
            _ => {}
        }
    }
    // Comments mark what tests generate.
    events.retain(|event| !matches!(event, Event::Html(html) if html.starts_with("<!--")));
    events
}

fn address(document: &Document, link: &str, top: &str) -> String {
    match links::resolve(document.path, link) {
        Some(LinkTarget::Document(target, heading)) => {
            let heading = heading.map(|heading| format!("#{heading}")).unwrap_or_default();
            format!("{top}{}{heading}", path_of(target))
        }
        // A test refuses pages whose links lead nowhere.
        _ => link.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests;
