//! The tables of criteria and of rules, for documents.

use crate::bottlenecks::RULES as SHARES;
use crate::criteria::CRITERIA;
use crate::rules::{RULES, RuleKind};
use numakit_model::numbers::{grouped, plain};

/// The criteria as Markdown.
pub fn criteria_guide() -> String {
    let mut text = String::from(
        "| what | share | minimum events | from | word | meaning |\n|---|---|---|---|---|---|\n",
    );
    for criterion in CRITERIA {
        let formula = format!("`{}`", criterion.share);
        let minimum = if criterion.events.is_some() { grouped(criterion.minimum) } else { String::new() };
        for (at, (threshold, word, meaning)) in criterion.steps.iter().filter(|s| !s.1.is_empty()).enumerate()
        {
            let [what, share, minimum] = match at {
                0 => [criterion.name, &formula, &minimum],
                _ => ["", "", ""],
            };
            text.push_str(&format!(
                "| {what} | {share} | {minimum} | {threshold} % | {word} | {meaning} |\n"
            ));
        }
    }
    text
}

/// The rules of shares as Markdown.
pub fn shares_guide() -> String {
    let mut text =
        String::from("| formula | per | from | minimum | what it means |\n|---|---|---|---|---|\n");
    for rule in SHARES {
        let scopes: Vec<&str> = rule.limit.scopes.iter().map(|scope| scope.name()).collect();
        let (formula, threshold, does) = (rule.limit.formula, rule.limit.threshold, rule.does);
        let scopes = scopes.join(", else ");
        let minimum =
            rule.limit.minimum.map_or_else(String::new, |(name, value)| format!("`{name}` of {value}"));
        text.push_str(&format!("| `{formula}` | {scopes} | {threshold} % | {minimum} | {does} |\n"));
    }
    text
}

/// The rules about objects as Markdown, in the order in which they are tried.
pub fn objects_guide() -> String {
    let of_objects = RULES.iter().filter(|rule| rule.limit().is_none());
    let rows: String = of_objects.map(|rule| format!("| `{}` | {} |\n", rule.name, rule.finds)).collect();
    format!("| verdict | what is seen |\n|---|---|\n{rows}")
}

/// The rules of findings about rows as Markdown.
pub fn findings_guide() -> String {
    let mut text = String::from("| rule | finds | follows | from |\n|---|---|---|---|\n");
    for rule in RULES {
        let Some(limit) = rule.limit() else { continue };
        let kind = match rule.kind {
            RuleKind::Failure | RuleKind::Problem => "",
            RuleKind::Remark => " (no problem)",
        };
        let (name, finds, formula) = (rule.name, rule.finds, limit.formula);
        text.push_str(&format!("| {name} | {finds}{kind} | `{formula}` | {} |\n", plain(limit.threshold)));
    }
    text
}
