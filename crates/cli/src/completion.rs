//! Shell completions: the definition of the command line, with suggestions for options that also
//! accept other values.

use crate::verbs::help;
use crate::{Group, SECOND_NAME, Verb, definition, listed_verbs, manual, programs};
use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgGroup, Command};
use clap_complete::Shell;
use numakit_formulas::Catalog;
use numakit_guide::topics;
use numakit_observation::control_command::CONTROL_COMMANDS;
use numakit_placement::launchers::LAUNCHERS;
use numakit_sensors::SENSORS;
use numakit_topology::synthetic::presets;

/// The completion script of a program.
pub fn script(shell: Shell, program: &str) -> anyhow::Result<String> {
    let name = if program == SECOND_NAME { "numa" } else { program };
    let mut definition =
        definitions().find(|definition| definition.get_name() == name).with_context(|| {
            let names: Vec<String> =
                definitions().map(|definition| definition.get_name().to_owned()).collect();
            format!(
                "there are no completions for '{program}'; there are: {SECOND_NAME}, {}",
                names.join(", ")
            )
        })?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition, program, &mut script);
    let script = String::from_utf8(script)?;
    let script = if shell == Shell::Bash { without_options(&script, program) } else { script };
    Ok(if program == "numa" { with_second_name(shell, &script) } else { script })
}

/// The script of `numa` for its second name too.
fn with_second_name(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => script.replace(" default numa\n", &format!(" default numa {SECOND_NAME}\n")),
        Shell::Zsh => script.replace("#compdef numa\n", &format!("#compdef numa {SECOND_NAME}\n")),
        Shell::Fish => format!("{script}complete -c {SECOND_NAME} -w numa\n"),
        _ => script.to_owned(),
    }
}

/// A script of bash that offers options only behind a `-` or where there is nothing else, and each word once.
fn without_options(script: &str, program: &str) -> String {
    let function = format!("_{program}_words");
    let call = format!("complete -F _{program} ");
    let filter = format!(
        r#"
{function}() {{
    _{program} "$@"
    [[ "$2" == -* ]] && return
    local word words=()
    for word in "${{COMPREPLY[@]}}"; do
        [[ "$word" == -* || " ${{words[*]}} " == *" $word "* ]] || words+=("$word")
    done
    [[ ${{#words[@]}} -eq 0 ]] || COMPREPLY=("${{words[@]}}")
}}
"#
    );
    format!("{}{filter}", script.replace(&call, &format!("complete -F {function} ")))
}

fn definitions() -> impl Iterator<Item = Command> {
    programs().into_iter().map(|program| if program.get_name() == "numa" { for_shells() } else { program })
}

/// The definition of `numa` for generators of completions only.
pub fn for_shells() -> Command {
    listed_verbs().fold(definition(|verb| verb.group != Group::Hidden, Verb::command), |numa, verb| {
        numa.mut_subcommand(verb.name, |definition| with_words(verb.name, &definition))
    })
}

/// The definition of a verb with suggestions and without hidden options, which clap would suggest.
fn with_words(name: &'static str, verb: &Command) -> Command {
    let visible = verb.get_arguments().filter(|arg| !arg.is_hide_set()).cloned();
    let arguments = visible.map(|arg| match words(arg.get_id().as_str()) {
        None => arg,
        Some(words) => arg.value_parser(PossibleValuesParser::new(words)),
    });
    let about = verb.get_about().cloned().unwrap_or_default();
    let groups = verb.get_groups().map(|group| {
        let visible = group
            .get_args()
            .filter(|id| verb.get_arguments().any(|arg| arg.get_id() == *id && !arg.is_hide_set()));
        ArgGroup::new(group.get_id().clone()).multiple(true).args(visible.cloned())
    });
    let tasks = verb.get_subcommands().cloned();
    // clap cannot remove an argument from a definition.
    Command::new(name).about(about).args(arguments).groups(groups).subcommands(tasks)
}

/// Suggestions for an option or argument of any verb, by its name in the definition.
fn words(argument: &str) -> Option<Vec<PossibleValue>> {
    let word = |(name, help): (&'static str, &'static str)| PossibleValue::new(name).help(help);
    let words = match argument {
        "events" | "pattern" => series(),
        "metrics" => formulas(),
        "launcher" => LAUNCHERS.iter().map(|launcher| word((launcher.name, launcher.help))).collect(),
        "order" => CONTROL_COMMANDS.iter().map(|(name, _, help)| word((name, help))).collect(),
        "policy" => POLICIES.map(word).into(),
        "memory" => MEMORY.map(word).into(),
        "page" => named(manual::pages(programs()).unwrap_or_default().into_iter().map(|page| page.name)),
        "topic" => {
            let lists = [help::GUIDE, help::MORE].map(str::to_owned).into_iter();
            named(lists.chain(listed_verbs().map(|verb| verb.name.to_owned())).chain(pages()))
        }
        "machine" | "projected" => named(machines()),
        "guide_page" => named(pages()),
        "program" => named(programs().iter().map(|program| program.get_name().to_owned())),
        _ => return None,
    };
    Some(words)
}

/// Sensors and metrics known on every machine, without help texts: there are too many. 'numa list' has
/// those of this machine.
fn series() -> Vec<PossibleValue> {
    let sensors = SENSORS.iter().map(|sensor| PossibleValue::new(sensor.name));
    let known = SENSORS.iter().flat_map(|sensor| (sensor.known)());
    sensors.chain(named(known.map(|metric| metric.name))).collect()
}

/// The pages of the guide.
fn pages() -> impl Iterator<Item = String> {
    topics::topics().map(|topic| topic.name.clone())
}

/// The machines that have names, as one word each: spaces in names do not count.
fn machines() -> impl Iterator<Item = String> {
    presets::all().filter_map(Result::ok).map(|machine| machine.name.replace(' ', "-"))
}

/// Suggestions without help texts.
fn named(names: impl Iterator<Item = String>) -> Vec<PossibleValue> {
    // A definition needs static names; this runs once.
    names.map(|name| PossibleValue::new(&*name.leak())).collect()
}

fn formulas() -> Vec<PossibleValue> {
    let built_in = Catalog::built_in().all().iter();
    built_in.map(|formula| PossibleValue::new(formula.name.as_str()).help(first(&formula.help))).collect()
}

/// The first sentence, without its full stop: shells show one line.
fn first(help: &str) -> &str {
    help.split(". ").next().unwrap_or_default().trim_end_matches('.')
}

const POLICIES: [(&str, &str); 5] = [
    ("compact", "nearest nodes first"),
    ("scatter", "nodes far apart"),
    ("balanced", "the same number on each node"),
    ("memory:", "as many nodes as provide that much memory"),
    ("near:", "near a device"),
];

const MEMORY: [(&str, &str); 5] = [
    ("local", "from the node where the thread runs"),
    ("bind", "only from these nodes"),
    ("prefer", "from these nodes while they have free memory"),
    ("interleave", "page by page from these nodes in turn"),
    ("weighted", "interleave, with the kernel's weights of the nodes"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    fn suggested(verb: &str, argument: &str) -> Vec<String> {
        let numa = for_shells();
        let verb = numa.find_subcommand(verb).unwrap();
        let arg = verb.get_arguments().find(|arg| arg.get_id() == argument).unwrap();
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
    }

    #[test]
    fn the_script_of_numa_is_for_its_second_name_too() {
        for (shell, line) in [
            (Shell::Bash, " default numa numakit\n"),
            (Shell::Zsh, "#compdef numa numakit\n"),
            (Shell::Fish, "\ncomplete -c numakit -w numa\n"),
        ] {
            assert!(script(shell, "numa").unwrap().contains(line), "{shell}");
        }
    }

    #[test]
    fn suggested_machines_are_found() {
        for (verb, argument) in
            [("plan", "machine"), ("run", "machine"), ("topo", "machine"), ("explain", "projected")]
        {
            let machines = suggested(verb, argument);
            assert!(machines.len() > 20, "{verb}: {machines:?}");
            for name in machines {
                assert!(presets::find(&name).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn known_words_are_suggested() {
        assert!(suggested("plan", "launcher").contains(&"openmpi4".to_owned()));
        assert_eq!(suggested("plan", "launcher").len(), LAUNCHERS.len());
        for verb in ["stat", "record", "live"] {
            let events = suggested(verb, "events");
            assert!(events.contains(&"vmstat".to_owned()) && events.contains(&"vmstat.pgfault".to_owned()));
        }
        assert!(suggested("stat", "metrics").contains(&"local".to_owned()));
        assert!(suggested("list", "pattern").contains(&"node.numa_hit".to_owned()));
        assert_eq!(suggested("ctl", "order").len(), CONTROL_COMMANDS.len());
        assert!(for_shells().find_subcommand("mark").is_none(), "a hidden verb");
        let run = for_shells();
        let run = run.find_subcommand("run").unwrap();
        assert!(run.get_arguments().all(|arg| !arg.is_hide_set()), "a hidden option");
        for_shells().debug_assert();
    }

    /// The parsers accept all suggestions.
    #[test]
    fn suggested_words_are_accepted() {
        for verb in ["plan", "run"] {
            let complete = |word: String| match word.as_str() {
                "memory:" => "memory:1G".to_owned(),
                "near:" => "near:gpu0".to_owned(),
                "bind" | "prefer" => format!("{word}:0"),
                _ => word,
            };
            for (option, argument) in [("--policy", "policy"), ("--memory", "memory")] {
                for word in suggested(verb, argument).into_iter().map(complete) {
                    let line = ["numa", verb, option, &word];
                    assert!(command().try_get_matches_from(line).is_ok(), "{line:?}");
                }
            }
        }
        for series in suggested("stat", "events") {
            assert!(series.parse::<numakit_sensors::Selection>().is_ok(), "{series}");
        }
    }
}
