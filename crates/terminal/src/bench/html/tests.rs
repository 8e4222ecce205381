use super::*;
use crate::bench::tests::results;
use numakit_bench::{Axis, CurveMark};

fn curve(name: &str, axis: Axis) -> Curve {
    let mut curve = Curve::new(name, "GB/s", false, axis);
    let value = results().benchmarks[0].values[0].value;
    [1.0, 2.0, 4.0].into_iter().for_each(|x| curve.add(x, Some(value)));
    curve
}

/// The names of elements that are open at the end, outermost first.
fn open_at_the_end(page: &str) -> Vec<&str> {
    const ALONE: [&str; 3] = ["meta", "br", "!doctype"];
    let mut open = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let name = tag.split([' ', '\n', '/']).find(|word| !word.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{page}");
        } else if !tag.ends_with('/') && !ALONE.contains(&name) {
            open.push(name);
        }
    }
    open
}

#[test]
fn a_page_has_all_values_and_all_doubts() {
    let mut results = results();
    results.topology = numakit_topology::synthetic::parse("package:2 node:2(mem=4G) core:1 pu:2").ok();
    let page = html(&results);
    assert_eq!(open_at_the_end(&page), [""; 0]);
    for part in [
        "<th scope=\"row\">Processor</th><td>Some CPU</td>",
        "Interrupted: the rest was not measured.",
        "<svg class=\"machine\" width=",
        "<td class=\"h0\" title=\"from 72.0\u{a0}to 96.0, 10\u{a0}samples\">80.0</td>",
        "\">260</td><td class=\"quiet\">-</td>",
        "best 80.0 <span class=\"ramp\">",
        "260\u{a0}worst; medians; the 10\u{a0}% and 90\u{a0}% quantiles are at most -10\u{a0}% and +20\u{a0}% away",
        "<th scope=\"row\">libnumalloc</th><td class=\"quiet\">-</td><td class=\"h0\"",
        "colours compare the values of a column; medians",
        "<figcaption>load latency, by size</figcaption>",
        ">ns, logarithmic</text>",
        ">size, logarithmic</text>",
        "text-anchor=\"middle\">L1</text>",
        "<td>64.0\u{a0}KiB</td><td>10.0</td>",
        "<td>a pass</td><td>5.00</td><td>4.50</td><td>6.00</td><td>9.00</td><td>ms</td>",
        "<p class=\"warning\">Warning: the machine was busy</p>",
        "<li>memory of node 0: small pages</li>",
        "<li>left out: memory of node 1: it has no memory</li>",
        "@media print",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "no '{part}' in\n{page}");
    }
    assert!(!page.contains("L3") && !page.contains("<script") && !page.contains("://"), "{page}");
}

#[test]
fn names_of_strangers_are_no_markup() {
    let mut results = results();
    let bad = "</style><script>\"&'";
    results.conditions.processor = bad.into();
    let result = &mut results.benchmarks[0];
    result.name = bad.into();
    result.matrices[0].name = bad.into();
    result.matrices[0].row = bad.into();
    result.matrices[0].unit = bad.into();
    result.tables[0].rows[1] = bad.into();
    result.tables[0].columns[0] = bad.into();
    result.values[0].name = bad.into();
    result.remarks.push(bad.into());
    result.warnings.push(bad.into());
    result.left_out[0].why = bad.into();
    let axis = Axis { name: bad.into(), unit: bad.into(), logarithmic: true };
    let curve = curve(bad, axis);
    let marks = vec![CurveMark { x: 2.0, name: bad.into() }];
    result.curves =
        vec![Curve { unit: bad.into(), marks, ..curve.clone() }, Curve { unit: bad.into(), ..curve }];
    let page = html(&results);
    assert!(!page.contains("<script") && !page.contains("\"&'"), "{page}");
    assert_eq!((page.matches("</style>").count(), open_at_the_end(&page)), (1, vec![]));
}

#[test]
fn curves_of_one_axis_and_unit_share_a_drawing() {
    let names = ["triad, compact", "triad, scatter", "triad, stride 2"];
    let mut curves: Vec<Curve> = names.map(|name| curve(name, Axis::threads())).into();
    curves.push(curve("by size", Axis::size()));
    let groups = plot::groups(&curves);
    assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
    let mut results = results();
    results.benchmarks[0].curves = curves;
    let page = html(&results);
    assert!(page.contains("<figcaption>triad, by threads</figcaption>"), "{page}");
    assert_eq!((page.matches("class=\"plot\"").count(), page.matches("class=\"key s").count()), (2, 3));
    assert!(
        page.contains("</svg> stride\u{a0}2</span>") || page.contains("</svg> stride 2</span>"),
        "{page}"
    );
    let many: Vec<Curve> = (0..20).map(|at| curve(&format!("{at}"), Axis::threads())).collect();
    assert_eq!(plot::groups(&many).iter().map(Vec::len).collect::<Vec<_>>(), [8, 8, 4]);
}

#[test]
fn each_pair_of_nodes_has_a_drawing_whose_heading_names_it() {
    let name = |reads, from, to| {
        format!("load latency, {reads} % reads, CPUs of node {from} with memory of node {to}")
    };
    let pairs = [(0, 0), (1, 1), (0, 1)];
    let of = |(from, to)| [100, 75].map(|reads| curve(&name(reads, from, to), Axis::bandwidth()));
    let mut results = results();
    results.benchmarks[0].curves = pairs.into_iter().flat_map(of).collect();
    let page = html(&results).replace('\u{a0}', " ");
    for (from, to) in pairs {
        let heading = format!("load latency, CPUs of node {from} with memory of node {to}, by bandwidth");
        assert_eq!(page.matches(&format!("<figcaption>{heading}</figcaption>")).count(), 1, "{heading}");
    }
    assert_eq!((page.matches("class=\"plot\"").count(), page.matches("% reads</span>").count()), (3, 6));
}

#[test]
fn without_values_there_is_no_drawing() {
    let empty = Curve::new("nothing", "ns", true, Axis::size());
    assert_eq!(plot::svg(&[&empty]), None);
    let mut results = results();
    results.benchmarks[0].curves = vec![empty];
    results.benchmarks[0].matrices[0].cells = vec![vec![None; 2]; 2];
    results.benchmarks[0].tables[0].cells = vec![vec![None; 2]; 2];
    assert_eq!(html(&results).matches("nothing was measured").count(), 3);
}
