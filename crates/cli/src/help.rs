//! The help and the man page of `numa`, with its verbs by group.

use crate::{Examples, Group, VERBS};
use clap::Command;
use clap::builder::StyledStr;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use numakit_guide::topics;
use std::ffi::OsString;
use std::fmt::Write;
use std::io;

/// One line about `numa`.
pub const ABOUT: &str = "Show why programs wait for memory, and run them close to it";

/// The text of the man page and of the long help.
pub const LONG_ABOUT: &str = "\
Show why programs wait for memory, and run them close to it

  numa                                    what is wrong on this machine now
  numa ./app                              run it: what costs, which data, whose line, what to do
  numa explain --name postgres --for 20s  the same for programs that run already
  numa run -c 64 ./app                    64 free cores, a thread on each with its memory beside it

If you have another program called numa, type numakit.";

/// Whether the words of a command line ask for help, which needs its text.
pub fn is_asked(words: &[OsString]) -> bool {
    words.iter().any(|word| word == "-h" || word == "--help")
}

/// The verbs of a group with the first line of their help, from the complete definition.
pub fn verbs(numa: &Command, group: Group) -> Vec<(&'static str, String)> {
    let about = |name| Some(numa.find_subcommand(name)?.get_about()?.to_string());
    let verbs = VERBS.iter().filter(|verb| verb.group == group);
    verbs.map(|verb| (verb.name, about(verb.name).unwrap_or_default())).collect()
}

/// The template of the help, with the verbs that most users need: clap has one heading for all subcommands.
pub fn template(numa: &Command) -> String {
    let heading = numa.get_styles().get_header();
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n       numa CMD [ARGS]\n{}\n{heading}Global options:{heading:#}\n{{options}}\n\n\
         'numa help VERB' describes a verb, 'numa help more' lists all, 'numa help guide' lists the guide.",
        listed(numa, &[Group::Front])
    )
}

/// The verbs of groups, by group.
pub fn listed(numa: &Command, groups: &[Group]) -> String {
    let (heading, literal) = (numa.get_styles().get_header(), numa.get_styles().get_literal());
    let mut text = String::new();
    for group in groups {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{heading}{}:{heading:#}", group.heading());
        for (name, about) in verbs(numa, *group) {
            let _ = writeln!(text, "  {literal}{name:<13}{literal:#} {about}");
        }
    }
    text
}

/// The definition of a verb whose help begins with its first line and two examples; what else there is to say of it follows.
pub fn with_examples(verb: Command, examples: &Examples) -> Command {
    let heading = verb.get_styles().get_header();
    let text = |text: Option<&StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let (about, long) = (text(verb.get_about()), text(verb.get_long_about()));
    let mut template = format!("{about}\n\n{heading}Examples:{heading:#}\n");
    let width = examples.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    for (line, purpose) in examples {
        // Writing to a string cannot fail.
        let _ = writeln!(template, "  {line:<width$}  {purpose}");
    }
    template.push_str("\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}");
    if topics::of_verb(verb.get_name()).is_some() {
        let json = if writes_json(&verb) { "; it has the form of --json" } else { "" };
        let _ =
            write!(template, "\n\n'numa help guide {}' shows the page of the guide{json}.", verb.get_name());
    }
    let rest = long.strip_prefix(&about).unwrap_or(&long).trim_start().to_owned();
    let verb = verb.help_template(template);
    if rest.is_empty() { verb } else { verb.before_long_help(rest) }
}

/// Whether a verb or one of its tasks has the option --json.
fn writes_json(verb: &Command) -> bool {
    std::iter::once(verb)
        .chain(verb.get_subcommands())
        .any(|command| command.get_arguments().any(|arg| arg.get_long() == Some("json")))
}

/// The help of a verb.
pub fn of_verb(numa: &mut Command, name: &str) -> StyledStr {
    numa.find_subcommand_mut(name).map(Command::render_long_help).unwrap_or_default()
}

/// Renders a man page as [`Man::render`] does, but that of `numa` with the verbs by group, and that of a verb with its page of the
/// guide.
pub fn render(page: &Man, command: &Command, to: &mut Vec<u8>) -> io::Result<()> {
    if command.get_name() != "numa" {
        page.render(to)?;
        return see_guide(command).to_writer(to);
    }
    page.render_title(to)?;
    page.render_name_section(to)?;
    page.render_synopsis_section(to)?;
    page.render_description_section(to)?;
    by_group(command).to_writer(to)?;
    page.render_options_section(to)?;
    page.render_version_section(to)
}

/// Names the page of the guide about a verb.
fn see_guide(command: &Command) -> Roff {
    let mut text = Roff::new();
    let verb = command.get_display_name().and_then(|name| name.strip_prefix("numa-"));
    if let Some(verb) = verb.filter(|verb| topics::of_verb(verb).is_some()) {
        text.control("SH", ["SEE ALSO"]);
        text.text([bold(format!("numa help guide {verb}")), roman(" shows the page of the guide.")]);
    }
    text
}

fn by_group(numa: &Command) -> Roff {
    let mut text = Roff::new();
    text.control("SH", ["VERBS"]);
    for group in Group::LISTED {
        text.control("SS", [group.heading()]);
        for (name, about) in verbs(numa, group) {
            text.control("TP", []);
            text.text([bold(format!("numa-{name}(1)"))]);
            text.text([roman(about)]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Verb, command, programs};

    /// First words of a verb's help.
    const IMPERATIVES: [&str; 18] = [
        "Analyse", "Answer", "Bring", "Check", "Control", "Convert", "List", "Mark", "Measure", "Move",
        "Print", "Record", "Repair", "Run", "Save", "Send", "Serve", "Show",
    ];

    #[test]
    fn the_first_line_of_every_verb_says_what_it_does() {
        let mut numa = command();
        let first = numa.render_long_help().to_string();
        let all = StyledStr::from(listed(&numa, &Group::LISTED)).to_string();
        for group in Group::LISTED.into_iter().chain([Group::Hidden]) {
            for (name, about) in verbs(&numa, group) {
                let imperative = about.split(' ').next().unwrap();
                assert!(
                    IMPERATIVES.contains(&imperative),
                    "{name}: '{about}' does not begin with a known imperative"
                );
                assert!(about.len() <= 80 && !about.ends_with('.'), "{name}: '{about}'");
                let of = |text: &str| {
                    let lines =
                        text.lines().filter(|line| line.trim_start().starts_with(&format!("{name} ")));
                    lines.filter(|line| line.ends_with(&format!(" {about}"))).count()
                };
                assert_eq!(of(&first), usize::from(group == Group::Front), "{name} in\n{first}");
                assert_eq!(of(&all), usize::from(group != Group::Hidden), "{name} in\n{all}");
                numa.build();
                let verb = numa.find_subcommand_mut(name).unwrap();
                for help in [verb.render_help(), verb.render_long_help()] {
                    assert!(help.to_string().starts_with(&format!("{about}\n")), "{help}");
                }
            }
        }
    }

    #[test]
    fn help_of_every_verb_begins_with_two_examples_of_it() {
        let mut numa = command();
        numa.build();
        for verb in VERBS {
            let defined = numa.find_subcommand_mut(verb.name).unwrap();
            let about = defined.get_about().unwrap().to_string();
            for help in [defined.render_help().to_string(), defined.render_long_help().to_string()] {
                let start = format!("{about}\n\nExamples:\n  {}", verb.examples[0].0);
                assert!(help.starts_with(&start), "{help}");
            }
            let names = |line: &str| line.contains(verb.name) || line == "numa";
            assert!(verb.examples.iter().any(|(line, _)| names(line)), "{}", verb.name);
        }
    }

    #[test]
    fn the_first_screen_of_help_has_nine_verbs() {
        let front = VERBS.iter().filter(|verb| verb.group == Group::Front);
        assert_eq!(front.count(), 9);
        let help = command().render_help().to_string();
        assert!(help.starts_with(&format!("{ABOUT}\n")) && help.lines().count() <= 24, "{help}");
    }

    #[test]
    fn options_of_every_verb_come_last() {
        let mut numa = command();
        numa.build();
        for verb in VERBS {
            let verb = numa.find_subcommand_mut(verb.name).unwrap();
            for help in [verb.render_help().to_string(), verb.render_long_help().to_string()] {
                let (_, last) = help.split_once("Global options:\n").unwrap();
                let options: Vec<&str> = last
                    .lines()
                    .filter(|line| line.trim_start().starts_with('-'))
                    .filter_map(|line| line.split(' ').find(|word| word.starts_with("--")))
                    .collect();
                assert_eq!(options, ["--sysroot", "--color", "--help"], "{help}");
            }
        }
    }

    #[test]
    fn the_help_of_a_verb_names_its_page_which_has_the_form_of_its_json() {
        // Help itself has no page, and hidden verbs are for tests.
        let listed = VERBS.iter().filter(|verb| verb.group != Group::Hidden && verb.name != "help");
        let mut with_json = 0;
        for Verb { name, .. } in listed {
            let page =
                topics::of_verb(name).unwrap_or_else(|| panic!("docs/README.md names no page for '{name}'"));
            let mut numa = command();
            numa.build();
            let verb = numa.find_subcommand_mut(name).unwrap();
            let long = verb.render_long_help().to_string();
            assert!(long.contains(&format!("\n'numa help guide {name}' shows")), "{long}");
            if writes_json(verb) {
                with_json += 1;
                let markdown = page.document().unwrap().markdown();
                let has_form = markdown.lines().any(|line| line.starts_with("##") && line.contains("JSON"));
                assert!(has_form && long.contains("the form of --json"), "{name}: {}", page.path);
            }
        }
        assert!(with_json > 10, "{with_json}");
    }

    #[test]
    fn help_is_short_above_the_options_and_has_no_forms_of_json() {
        let mut numa = command();
        numa.build();
        for verb in VERBS {
            let defined = numa.find_subcommand_mut(verb.name).unwrap();
            let tasks: Vec<Command> = defined.get_subcommands().cloned().collect();
            for mut command in std::iter::once(defined.clone()).chain(tasks) {
                let long = command.render_long_help().to_string();
                let is_option = |line: &&str| line.starts_with("  ") && line.trim_start().starts_with('-');
                let above = long.lines().take_while(|line| !is_option(line)).count();
                assert!(above <= 40, "{}: {above} lines\n{long}", command.get_name());
                for of_forms in ["[{", ": {", " {pid", "json writes"] {
                    assert!(!long.contains(of_forms), "{}: '{of_forms}' in\n{long}", command.get_name());
                }
            }
        }
    }

    /// The man page of a program, without roff escapes.
    fn page(name: &str) -> String {
        let mut program = programs().into_iter().find(|program| program.get_name() == name).unwrap();
        program = program.disable_help_subcommand(true);
        program.build();
        let mut text = Vec::new();
        render(&Man::new(program.clone()), &program, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap().replace("\\-", "-").replace("\\*(Aq", "'");
        ["\\fB", "\\fR", "\\fI"].iter().fold(text, |text, font| text.replace(font, ""))
    }

    #[test]
    fn the_man_page_of_numa_opens_with_what_it_is_and_lists_verbs_by_group() {
        let page = page("numa");
        let mut order = vec!["numa - ".to_owned() + ABOUT, ".SH DESCRIPTION".to_owned()];
        for group in Group::LISTED {
            order.push(group.heading().to_owned());
            order.extend(
                verbs(&command(), group).iter().map(|(name, about)| format!("numa-{name}(1)\n{about}\n")),
            );
        }
        order.push("GLOBAL OPTIONS".to_owned());
        let mut rest = page.as_str();
        for part in order {
            let (_, after) = rest.split_once(&part).unwrap_or_else(|| panic!("no '{part}' in\n{rest}"));
            rest = after;
        }
        assert!(!page.contains("numa-mark"), "{page}");
    }

    #[test]
    fn numascope_and_numaplace_have_man_pages() {
        for (name, option, runs) in [
            ("numascope", "--listenAddr", "a 'numa' command line"),
            ("numaplace", "--no-allocator", "a 'numa run' command line"),
        ] {
            let page = page(name);
            for part in [&format!(".SH NAME\n{name} - "), ".SH OPTIONS", option, runs] {
                assert!(page.contains(part), "no '{part}' in\n{page}");
            }
        }
    }
}
