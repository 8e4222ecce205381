//! `numa help`.

use crate::words::FORMER_NAMES;
use crate::{Examples, GlobalArgs, Group, VERBS, Verb, command, guide, help, listed_verbs};
use anyhow::bail;
use clap::Args;
use numakit_guide::{Document, topics};
use numakit_sys::stdio::print;
use std::process::ExitCode;

/// The word for the verbs that the first help leaves out.
pub(crate) const MORE: &str = "more";
/// The word for the pages of the guide.
pub(crate) const GUIDE: &str = "guide";

/// A word for which there is no page: the page of each verb has its form.
const JSON: &str = "json";

/// The last line of the list of verbs.
const SEE_GUIDE: &str = "\n'numa help guide' lists the pages of the guide.\n";

/// Show the help of a verb or a page of the guide, or list all verbs
///
/// 'numa help guide' lists the pages. Where a verb and a page have the same name, 'numa help NAME' is the help of the verb, and 'numa help
/// guide NAME' the page; the name of a verb also finds the page that describes it. On a terminal, $NUMAKIT_PAGER, else $PAGER, else
/// less shows the page; elsewhere it is plain text.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// A verb, a page of the guide, 'guide' for the list of pages, or 'more' for all verbs
    topic: Option<String>,
    /// After 'guide': a page, or a verb for the page that describes it
    #[arg(value_name = "PAGE")]
    guide_page: Option<String>,
    /// Show the guide in a browser, until Ctrl-C
    #[arg(long)]
    web: bool,
    /// Address to listen on, with --web; 127.0.0.1:7077 if it is not given, or another port if that is in use
    #[arg(long, value_name = "ADDRESS:PORT", requires = "web")]
    listen: Option<String>,
    /// Do not open a browser, with --web
    #[arg(long, requires = "web")]
    no_open: bool,
}

impl HelpArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples =
        [("numa help run", "describes the verb run"), ("numa help guide", "lists the pages of the guide")];

    /// Prints it, or serves the guide.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("help is part of this program")?;
        let (topic, page) = (self.topic.as_deref(), self.guide_page.as_deref());
        if self.web {
            let page = match (topic, page) {
                (None, None) | (Some(GUIDE), None) => None,
                (Some(GUIDE), Some(name)) | (Some(name), None) => Some(page_of(name)?),
                (Some(first), Some(second)) => return Err(too_many(first, second)),
                (None, Some(page)) => Some(page_of(page)?),
            };
            guide::serve(page, self.listen.as_deref(), !self.no_open)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut numa = command();
        numa.build();
        let text = match (topic, page) {
            (None, _) => numa.render_long_help(),
            (Some(GUIDE), None) => guide::listed(numa.get_styles()).into(),
            (Some(GUIDE), Some(name)) => return guide::show(page_of(name)?, global.color()),
            (Some(first), Some(second)) => return Err(too_many(first, second)),
            (Some(MORE), None) => (help::listed(&numa, &Group::LISTED) + SEE_GUIDE).into(),
            (Some(name), None) => match verb(name) {
                Some(verb) => help::of_verb(&mut numa, verb.name),
                None => return guide::show(page_of(name)?, global.color()),
            },
        };
        match global.color() {
            true => print(text.ansi())?,
            false => print(text)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The verb with this name, or that replaces it unless there is a page about it.
fn verb(name: &str) -> Option<&'static Verb> {
    let has_page = topics::topics().any(|topic| topic.name == name);
    let former = FORMER_NAMES.iter().find(|former| former.name == name && !has_page);
    let name = former.and_then(|former| former.now.first().copied()).unwrap_or(name);
    VERBS.iter().find(|verb| verb.name == name)
}

fn page_of(name: &str) -> anyhow::Result<&'static Document> {
    if let Some(page) = topics::page(name) {
        return Ok(page);
    }
    if name.eq_ignore_ascii_case(JSON) {
        bail!(
            "the form of JSON is on the page of the verb that writes it, as in 'numa help guide explain' and 'numa help guide show'"
        );
    }
    if verb(name).is_some() {
        bail!("the guide has no page about 'numa {name}'; 'numa help {name}' is its help");
    }
    let verbs = listed_verbs().map(|verb| verb.name);
    let known = verbs.chain(topics::topics().map(|topic| topic.name.as_str()));
    let nearest = numakit_model::suggest::nearest(name, known, 3);
    let meant = match nearest.as_slice() {
        [] => ";".to_owned(),
        some => format!("; did you mean '{}'?", some.join("' or '")),
    };
    bail!(
        "there is no verb and no page of the guide '{name}'{meant} 'numa help more' lists the verbs, 'numa help guide' the pages"
    )
}

fn too_many(first: &str, second: &str) -> anyhow::Error {
    let instead = match (page_of(second), verb(first)) {
        (Ok(_), _) => format!("'numa help guide {second}' shows a page of the guide"),
        (Err(_), Some(verb)) => format!("'numa help {0}' has all of '{0}'", verb.name),
        (Err(_), None) => "'numa help guide' lists the pages of the guide".to_owned(),
    };
    anyhow::anyhow!("one topic at a time; {instead}")
}
