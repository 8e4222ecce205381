//! Pages without scripts, which need no other file: the frame, tables and escaped text.

use std::fmt::Write;

/// The look of all pages. What one page alone needs, it gives to [`document`].
const STYLE: &str = include_str!("html/page.css");

/// A whole page. The heading and the body are markup; the title is text.
pub(crate) fn document(title: &str, style: &str, heading: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <style>{STYLE}{style}</style>\n</head>\n<body>\n<main>\n<h1>{heading}</h1>\n{body}</main>\n</body>\n</html>\n",
        escaped(title)
    )
}

/// Text that is no markup. No line ends between a number and its unit.
pub(crate) fn escaped(text: &str) -> String {
    let mut before = ' ';
    let joined = |letter: char| {
        let is_joint = letter == ' ' && before.is_ascii_digit();
        before = letter;
        if is_joint { '\u{a0}' } else { letter }
    };
    let text: String = text.chars().map(joined).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Adds a text between markup.
pub(crate) fn put(page: &mut String, open: &str, text: &str, close: &str) {
    // Writing to a string cannot fail.
    let _ = write!(page, "{open}{}{close}", escaped(text));
}

/// Adds a table; its first column is text.
pub(crate) fn table(page: &mut String, headings: &[&str], rows: &[Vec<String>]) {
    page.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    headings.iter().for_each(|heading| put(page, "<th>", heading, "</th>"));
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        row.iter().for_each(|cell| put(page, "<td>", cell, "</td>"));
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n");
}
