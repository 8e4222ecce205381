use super::*;

const PROMISED: [&str; 10] = [
    "two",
    "four",
    "watched",
    "eight",
    "memoryless",
    "cpuless",
    "asymmetric",
    "restricted",
    "numbering",
    "smt",
];

#[test]
fn the_shapes_that_are_promised_are_there() {
    let names: Vec<_> = Shape::all().unwrap().into_iter().map(|shape| shape.name).collect();
    assert_eq!(names, PROMISED);
}

#[test]
fn four_is_two_boards() {
    let four = Shape::named("four").unwrap();
    assert_eq!((four.cpus(), four.memory_mib(), four.packages), (8, 1024, 2));
    assert_eq!(four.distances[1], [16, 10, 100, 100]);
    assert_eq!(four.nodes[3].cpus.to_string(), "6-7");
}

#[test]
fn memory_is_given_to_nodes_that_have_some() {
    let mut shape = Shape::named("memoryless").unwrap();
    shape.set_memory_mib(1024);
    assert_eq!(shape.nodes.iter().map(|node| node.memory_mib).collect::<Vec<_>>(), [1024, 0, 1024]);
}

#[test]
fn numbers_may_go_to_and_fro_between_nodes() {
    let shape = Shape::named("numbering").unwrap();
    assert_eq!(
        shape.nodes.iter().map(|node| node.cpus.to_string()).collect::<Vec<_>>(),
        ["0,2", "1,3", "4,6", "5,7"]
    );
    assert_eq!(shape.all_cpus().to_string(), "0-7");
    assert_eq!(Shape::named("smt").unwrap().threads, 2);
}

#[test]
fn distances_have_the_usual_default() {
    let shapes = Shape::parse("shape a\nnode 0 cpus 0 memory 128\nnode 1 cpus 1 memory 128\n").unwrap();
    assert_eq!(shapes[0].distances, [[10, 20], [20, 10]]);
    assert_eq!((shapes[0].packages, shapes[0].dies), (1, 1));
}

#[test]
fn an_unknown_name_is_answered_with_those_that_exist() {
    let error = Shape::named("fuor").unwrap_err().to_string();
    assert_eq!(error, format!("no shape 'fuor'; there are: {}", PROMISED.join(", ")));
}

/// A text, and the error that it must give.
const WRONG: [(&str, &str); 19] = [
    ("about x", "line 1 of the shapes: nothing may stand before the first line 'shape NAME'"),
    (
        "shape a\n\nnoed 0",
        "line 3 of the shapes: 'noed 0' is no fact of a shape; the top of shapes.txt has all",
    ),
    ("shape a\nnode 1 cpus 0 memory 256", "line 2 of the shapes: node 1: the next node is 0, of at most 16"),
    ("shape a\nnode 0 cpus 0 memory -1", "line 2 of the shapes: '-1' is not a number that is possible here"),
    ("shape a", "line 1 of the shapes: 'a' has 0 CPUs; between 1 and 64 are possible"),
    (
        "shape a\nnode 0 cpus 1-2 memory 256",
        "line 1 of the shapes: there is a CPU 1 and no CPU 0; number them from 0 without a gap",
    ),
    (
        "shape a\nnode 0 cpus 0-1 memory 256\nnode 1 cpus 1-2 memory 256",
        "line 1 of the shapes: CPU 1 is on two nodes; let it stand on one",
    ),
    (
        "shape a\nthreads 2\npackages 2\nnode 0 cpus 0-5 memory 256",
        "line 1 of the shapes: 6 CPUs cannot be divided evenly among 2 packages of 1 dies with cores of 2 threads",
    ),
    (
        "shape a\nthreads 0\nnode 0 cpus 0-5 memory 256",
        "line 1 of the shapes: 6 CPUs cannot be divided evenly among 1 packages of 1 dies with cores of 0 threads",
    ),
    (
        "shape a\npackages 2\nnode 0 cpus 0-2 memory 256",
        "line 1 of the shapes: 3 CPUs cannot be divided evenly among 2 packages of 1 dies",
    ),
    (
        "shape a\npackages 0\nnode 0 cpus 0-2 memory 256",
        "line 1 of the shapes: 3 CPUs cannot be divided evenly among 0 packages of 1 dies",
    ),
    (
        "shape a\nnode 0 cpus 0 memory 64",
        "line 1 of the shapes: no node has 128 MiB; Linux does not start with less",
    ),
    (
        "shape a\nnode 0 cpus 0 memory 256\ndistances 0 10 20",
        "line 1 of the shapes: 1 nodes need 1 rows 'distances FROM ...' of 1 values",
    ),
    (
        "shape a\nnode 0 cpus 0 memory 256\ndistances 0 12",
        "line 1 of the shapes: distance 12 from 0 to 0: 10 to itself, more to others",
    ),
    (
        "shape a\nnode 0 cpus 0 memory 256\nlatency 0 1 100",
        "line 3 of the shapes: node 1 is not known yet; write its line 'node 1 cpus ... memory ...' above this one",
    ),
    (
        "shape a\nnode 0 cpus 0 memory 256\nlatency 0 0 100",
        "line 1 of the shapes: 'bandwidth 0 0' must be there once",
    ),
    (
        "shape a\nnode 0 cpus 0 memory 256\nnode 1 cpus none memory 256\nlatency 0 0 9\nlatency 0 1 20\n",
        "line 1 of the shapes: node 1 has no CPUs; add 'initiator 1 FROM'",
    ),
    (
        "shape a\nnode 0 cpus 0 memory 256\ncpuset cpus 0-1 mems 0",
        "line 1 of the shapes: the cpuset names what is not there: CPUs 0-1, nodes 0",
    ),
    (
        "shape a\nnode 0 cpus 0 memory 256\nshape a\nnode 0 cpus 0 memory 256",
        "line 3 of the shapes: a second shape 'a'; give it another name",
    ),
];

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (text, expected) in WRONG {
        assert_eq!(Shape::parse(text).unwrap_err().to_string(), expected, "{text}");
    }
}
