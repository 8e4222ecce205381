//! The table of criteria for the documents.

use super::criteria::CRITERIA;
use crate::units::grouped;

/// The criteria as Markdown, from the one table there is.
pub fn guide() -> String {
    let mut text =
        String::from("| what | share | least events | from | word | meaning |\n|---|---|---|---|---|---|\n");
    for criterion in CRITERIA {
        let formula = format!("`{}`", criterion.share);
        let minimum = if criterion.events.is_some() { grouped(criterion.minimum) } else { String::new() };
        for (at, (threshold, word, meaning)) in criterion.steps.iter().filter(|s| !s.1.is_empty()).enumerate()
        {
            let [what, share, least] = match at {
                0 => [criterion.name, &formula, &minimum],
                _ => ["", "", ""],
            };
            text.push_str(&format!("| {what} | {share} | {least} | {threshold} % | {word} | {meaning} |\n"));
        }
    }
    text
}
