//! Who touched an object first is known without performance events, by the page faults that samples count.

use crate::explain::{explained_with, program};
use crate::explain_objects::first;
use crate::runner::Folder;

/// The methods whose samples count page faults.
const ROADS: [&str; 2] = ["in-process", "ptrace"];

#[test]
fn measuring_the_faults_of_samples_name_who_touched_an_array_first() {
    let folder = Folder::new("first-touch");
    let Some(program) = program(&folder, "cc", "first_touch.c") else { return };
    for (who, function, other) in
        [("main", "initialise", "fill_part"), ("parallel", "fill_part", "initialise")]
    {
        for method in ROADS {
            let command = format!("{} {who}", program.display());
            let Some(result) = explained_with(&folder, &format!("--method {method}"), &command) else {
                return;
            };
            let object = first(&result);
            let touches = object["first_touch"].as_array().unwrap();
            println!("{method} {who}: {touches:?}");
            let total: f64 = touches.iter().map(|touch| touch["share"].as_f64().unwrap()).sum();
            assert!(total > 0.9, "{method} {who}: {touches:?}");
            for touch in touches {
                assert_eq!(touch["known_by"], "sampled-faults", "{touch}");
                let chain: Vec<&str> =
                    touch["chain"].as_array().unwrap().iter().map(|frame| frame.as_str().unwrap()).collect();
                assert!(!chain.iter().any(|frame| frame.contains(other)), "{method} {who}: {chain:?}");
            }
            let by_function = |touch: &&serde_json::Value| {
                let innermost = touch["chain"][0].as_str().unwrap();
                innermost.starts_with(function) && innermost.contains("first_touch.c:")
            };
            let named: f64 =
                touches.iter().filter(by_function).map(|touch| touch["share"].as_f64().unwrap()).sum();
            assert!(named > 0.9, "{method} {who}: {touches:?}");
            let by_main = touches.iter().any(|touch| touch["thread"] == object["pid"]);
            assert_eq!(by_main, who == "main", "{method} {who}: {touches:?}");
        }
    }
}
