//! Screens as text.

use super::*;
use crate::machine::{MachineMeters, Moment, NodeMoment};
use crate::playback::Playback;
use crate::table::{NotRead, ProcessRow, ProcessSelection, ProcessTable};
use crate::testing::{header, machine_of};
use crate::view::{Prompt, Question, SourceState};
use numakit_findings::finding::{Findings, Headline, Untold};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::sync::Arc;
use std::time::Duration;

const ASCII: Theme = Theme { color: false, unicode: false };

fn screen(view: &mut View, theme: Theme, columns: u16, rows: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| {
            let area = frame.area();
            draw(view, theme, area, frame.buffer_mut());
        })
        .unwrap();
    let cells = terminal.backend().buffer().content();
    let line = |row: &[ratatui::buffer::Cell]| row.iter().map(|cell| cell.symbol()).collect::<String>();
    cells.chunks(usize::from(columns)).map(|row| line(row).trim_end().to_owned()).collect()
}

fn moment(machine: &MachineMeters) -> Moment {
    let node = |at: usize| NodeMoment {
        busy: Some(10.0 * at as f64 + 5.0),
        total: Some(8e9),
        used: Some(1e9 * (at % 7 + 1) as f64),
        file: Some(1e9),
        local: (machine.nodes.len() > 1).then_some(100.0 - at as f64),
        bandwidth: None,
        utilisation: None,
    };
    Moment {
        time: 1,
        nodes: (0..machine.nodes.len()).map(node).collect(),
        cpus: (0..machine.cpus.len())
            .map(|cpu| Some(cpu as f64 * 100.0 / machine.cpus.len() as f64))
            .collect(),
        observed: None,
    }
}

fn process(pid: u32, command: &str, cpu: f64, memory: Result<Vec<u64>, NotRead>) -> ProcessRow {
    ProcessRow {
        pid,
        parent: 1,
        user: "alice".into(),
        command: command.into(),
        cpu: Some(cpu),
        remote: memory.is_ok().then_some(41.0),
        resident: Some(3 << 29),
        memory,
        faults: Some(1200.0),
        moved: None,
    }
}

fn view(description: &str) -> View {
    let machine = Arc::new(machine_of(&header(description)));
    let source = SourceState::Live { interval: Duration::from_secs(1), paused: false, ended: None };
    let mut view = View::new(Arc::clone(&machine), source, ProcessSelection::default());
    view.moment = Some(moment(&machine));
    let nodes = machine.nodes.len();
    let memory: Vec<u64> = (0..nodes).map(|at| if at == 0 { 3 << 28 } else { 3 << 26 }).collect();
    view.processes = ProcessTable {
        rows: vec![
            process(4711, "ep.B", 380.0, Ok(memory)),
            process(1, "systemd", 0.0, Err(NotRead::Denied)),
        ],
        absent: None,
        fix: "run as root".into(),
    };
    view.findings = Some(Findings {
        headline: Headline {
            verdict: "Nothing is wrong on this machine, as far as the last minute tells".into(),
            cost: "none; not known: memory bandwidth".into(),
            action: "nothing".into(),
        },
        untold: vec![Untold { what: "memory bandwidth", why: "no counter".into() }],
        ..Findings::default()
    });
    view
}

#[test]
fn a_machine_of_four_nodes_fits_80_by_24() {
    let lines = screen(&mut view("package:2 node:2 core:4"), ASCII, 80, 24);
    let expected = include_str!("golden/four_nodes.txt");
    if std::env::var_os("UPDATE").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/draw/golden/four_nodes.txt");
        std::fs::write(file, lines.join("\n") + "\n").unwrap();
        return;
    }
    assert_eq!(lines.join("\n") + "\n", expected);
}

#[test]
fn ascii_stays_ascii_and_unicode_has_bars() {
    let mut named = view("package:2 node:2 core:4");
    named.processes.rows[0].command = "tür".into();
    for page in ScreenPage::ALL {
        named.page = page;
        let text = screen(&mut named, ASCII, 100, 30).concat();
        assert!(text.is_ascii(), "{text}");
    }
    named.page = ScreenPage::Overview;
    let text = screen(&mut named, Theme { color: true, unicode: true }, 100, 30).concat();
    assert!(text.contains('▅') && text.contains("tür"), "{text}");
}

#[test]
fn on_one_node_nothing_is_said_to_be_local() {
    let mut view = view("node:1 core:2");
    let lines = screen(&mut view, ASCII, 80, 24);
    let text = lines.join("\n");
    assert!(text.contains("local share: cannot tell, because the machine has one node"), "{text}");
    assert!(!text.contains("100 %"), "{text}");
}

#[test]
fn a_machine_of_32_nodes_shows_those_that_stand_out_and_all_on_its_page() {
    let mut view = view("package:8 node:4 core:32");
    let lines = screen(&mut view, ASCII, 80, 24);
    let text = lines.join("\n");
    assert!(text.contains("28 more nodes") && text.contains("CPUs a character"), "{text}");
    assert!(lines.iter().any(|line| line.contains("ep.B")), "{text}");
    let wide = screen(&mut view, ASCII, 200, 50).join("\n");
    assert!(wide.contains(" 31 ") && wide.contains("n31 "), "{wide}");
    view.page = ScreenPage::Nodes;
    let all = screen(&mut view, ASCII, 200, 50).join("\n");
    assert!(!all.contains("more nodes") && !all.contains("CPUs a character"), "{all}");
}

#[test]
fn an_answer_that_is_too_long_for_its_line_is_wrapped_if_there_is_room() {
    let mut view = view("package:8 node:4 core:32");
    let says = "The program maps and unmaps memory all the time: 83.4 % of its CPU time in page faults";
    let command = "numa run env MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=1099511627776 solver";
    let headline = &mut view.findings.as_mut().unwrap().headline;
    (headline.verdict, headline.action) = (says.into(), command.into());
    let lines = screen(&mut view, ASCII, 80, 24);
    let answer: Vec<&str> = lines[1..6].iter().map(|line| line[8..].trim_end()).collect();
    assert_eq!(answer.join(" "), format!("{says} none; not known: memory bandwidth {command}"));
    assert!(lines.iter().any(|line| line.contains("ep.B")), "{lines:?}");
    let low = screen(&mut view, ASCII, 80, 16);
    assert!(low[2].starts_with("Cost") && low[3].starts_with("Do"), "{low:?}");
}

#[test]
fn the_selected_process_is_explained() {
    let mut view = view("package:2 node:2 core:4");
    view.selected = Some(4711);
    let text = screen(&mut view, ASCII, 80, 24).join("\n");
    assert!(text.contains("4711 ep.B: node 0 768 MiB, node 1 192 MiB"), "{text}");
    view.selected = Some(1);
    let text = screen(&mut view, ASCII, 80, 24).join("\n");
    assert!(text.contains("1 systemd: its memory cannot be read; run as root"), "{text}");
}

#[test]
fn moved_pages_have_a_column_while_they_are_counted() {
    let mut view = view("package:2 node:2 core:4");
    let heading = |view: &mut View| {
        let lines = screen(view, ASCII, 80, 24);
        let at = lines.iter().position(|line| line.contains("COMMAND")).unwrap();
        (lines[at].clone(), lines[at + 1].clone())
    };
    assert!(!heading(&mut view).0.contains("MOV/s"));
    view.processes.rows[0].moved = Some(350.0);
    let (heading, row) = heading(&mut view);
    assert!(heading.contains("FLT/s MOV/s NODES"), "{heading}");
    assert!(row.contains("  350 ") && row.contains("ep.B"), "{row}");
}

#[test]
fn the_help_has_every_key_and_every_reason() {
    let mut view = view("node:1 core:2");
    view.help = true;
    let text = screen(&mut view, ASCII, 100, 80).join("\n");
    for key in crate::keys::keys(false) {
        assert!(text.contains(key.does), "{}", key.does);
    }
    assert!(!text.contains("a tenth of the recording"), "{text}");
    for (what, _) in &view.machine.absent {
        assert!(text.contains(&format!("{what}: ")), "{what}");
    }
}

#[test]
fn before_the_first_sample_nothing_is_zero() {
    let mut view = view("package:2 node:2 core:4");
    (view.moment, view.findings, view.processes) = (None, None, ProcessTable::default());
    let lines = screen(&mut view, ASCII, 80, 24);
    let text = lines.join("\n");
    assert!(text.contains("after a second") && text.contains("after the first interval"), "{text}");
    assert!(!lines[1..16].iter().any(|line| line.contains('0') && line.contains('%')), "{text}");
}

#[test]
fn a_recording_shows_its_place_and_a_question_its_answer() {
    let mut view = view("package:2 node:2 core:4");
    let span = (0, 60_000_000_000);
    view.source = SourceState::Replay(Playback::new("ep.arrows".into(), span, Duration::from_secs(1)));
    let lines = screen(&mut view, ASCII, 100, 24);
    assert!(lines[0].ends_with("ep.arrows: 1.000 s of 1 min 0 s, x1"), "{}", lines[0]);
    view.prompt = Some(Prompt { question: Question::Time, text: "9".into() });
    let lines = screen(&mut view, ASCII, 100, 24);
    assert!(lines[23].contains("such as 90s or 2min: 9_"), "{}", lines[23]);
}

#[test]
fn no_size_is_a_failure() {
    for description in ["node:1 core:2", "package:8 node:4 core:32"] {
        let mut view = view(description);
        for page in ScreenPage::ALL {
            view.page = page;
            for (columns, rows) in [(1, 1), (39, 9), (40, 10), (41, 13), (80, 24), (300, 11), (400, 120)] {
                screen(&mut view, ASCII, columns, rows);
                view.help = !view.help;
                screen(&mut view, ASCII, columns, rows);
            }
        }
    }
}
