use super::*;
use crate::call_tree::CallTree;
use crate::code::CodeNames;

struct Named;

impl CodeNames for Named {
    fn name(&mut self, process: u32, instruction: u64) -> CodeName {
        let function = (instruction < 0x900).then(|| match instruction / 0x100 {
            1 => "main".to_owned(),
            2 => "operator<; <T>".to_owned(),
            other => format!("f{other}"),
        });
        CodeName { function, module: format!("lib{process}.so"), ..CodeName::default() }
    }
}

/// `main` calls two functions, of which one is called twice, and code without names.
fn graph() -> FlameGraph {
    let mut tree = CallTree::default();
    let mut values = ChainValues::new();
    for (chain, part, value) in [
        (&[0x210, 0x110][..], FlamePart::Node(1), 3000),
        (&[0x250, 0x130], FlamePart::Node(0), 1000),
        (&[0x310, 0x130], FlamePart::Contended, 500),
        (&[0x910, 0x130], FlamePart::UnknownNode, 250),
    ] {
        values.insert((tree.number(0, chain), part), value);
    }
    values.insert((0, FlamePart::Node(0)), 125);
    FlameGraph::new("Time", FlameUnit::Ns, &values, &mut ChainNames::new(&tree, &mut Named))
}

#[test]
fn chains_of_the_same_functions_are_one_stack() {
    let graph = graph();
    assert_eq!(graph.parts, ["node 0", "node 1", "unknown node", "contended lines"]);
    let folded = "main;operator<: <T>;[node 0] 1000\nmain;operator<: <T>;[node 1] 3000\n\
                  main;f3;[contended lines] 500\nmain;[lib0.so];[unknown node] 250\n(unknown chain);[node 0] 125\n";
    assert_eq!(graph.folded(), folded);
    assert_eq!(graph.total(), 4875);
}

#[test]
fn widths_are_values_and_names_are_escaped() {
    let svg = graph().svg();
    let widths: Vec<f64> =
        svg.split("data-w=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
    let expected = [4875.0, 125.0, 4750.0, 250.0, 500.0, 4000.0].map(|value| 1200.0 * value / 4875.0);
    assert_eq!(widths.len(), expected.len());
    for (width, expected) in widths.iter().zip(expected) {
        assert!((width - expected).abs() < 0.02, "{width} {expected}");
    }
    assert!(
        svg.contains("operator&lt;; &lt;T&gt;: 4.0 µs (82.1 %)\nnode 0: 1.0 µs\nnode 1: 3.0 µs"),
        "{svg}"
    );
    assert!(!svg.contains("operator<") && svg.ends_with("</svg>\n"));
}

#[test]
fn many_stacks_become_one() {
    let mut tree = CallTree::default();
    let values =
        (0..2 * MAX_STACKS as u64).map(|n| ((tree.number(0, &[0x1000 + n]), FlamePart::Node(0)), 1 + n));
    let values: ChainValues = values.collect();
    struct EachItsOwn;
    impl CodeNames for EachItsOwn {
        fn name(&mut self, _: u32, instruction: u64) -> CodeName {
            CodeName { function: Some(instruction.to_string()), ..CodeName::default() }
        }
    }
    let graph =
        FlameGraph::new("Time", FlameUnit::Bytes, &values, &mut ChainNames::new(&tree, &mut EachItsOwn));
    assert_eq!((graph.stacks.len(), graph.total()), (MAX_STACKS + 1, values.values().sum()));
    assert!(graph.folded().lines().last().unwrap().starts_with("(smaller stacks);[node 0] "));
}

#[test]
fn an_empty_graph_says_so() {
    let tree = CallTree::default();
    let mut named = Named;
    let mut names = ChainNames::new(&tree, &mut named);
    let graph = FlameGraph::new("Memory", FlameUnit::Bytes, &ChainValues::new(), &mut names);
    assert!(graph.svg().contains("nothing to show") && graph.folded().is_empty());
    assert_eq!(FlameUnit::Bytes.text(3 << 19), "1.5 MiB");
    assert_eq!((FlameUnit::Ns.text(12), FlameUnit::Ns.text(0)), ("12 ns".to_owned(), "0 ns".to_owned()));
}
