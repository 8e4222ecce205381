//! Small blocks are objects by the code that allocates them.

use crate::explain::{explained_with, program};
use crate::runner::Folder;
use serde_json::Value;

/// The allocating function of each object, how its blocks are called, and the functions that alone use them.
const SITES: [(&str, &str, [&str; 2]); 3] = [
    ("add_to_list", "blocks of 40 bytes, malloc in ", ["read_list", "add_to_list"]),
    ("add_to_tree", "blocks of 40 bytes, calloc in ", ["read_tree", "add_to_tree"]),
    ("add_to_table", "blocks of 64 bytes, malloc in ", ["read_table", "add_to_table"]),
];
/// What each of them allocates.
const COUNT: f64 = 1.2e6;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn measuring_samples_at_small_blocks_belong_to_the_sites_that_allocated_them() {
    let folder = Folder::new("sites");
    let Some(program) = program(&folder, "cc", "sites.c") else { return };
    let Some(result) = explained_with(&folder, "", &program.display().to_string()) else { return };
    let objects = result["objects"].as_array().unwrap();
    let (mut right, mut wrong, mut unknown) = (0.0, 0.0, 0.0);
    for object in objects {
        let (name, share) = (object["name"].as_str().unwrap(), number(&object["time_share"]));
        println!("{:5.1} % {:>9} {:>10} {name}", share * 100.0, object["pieces"], object["size"]);
        if name == "heap, site unknown" {
            unknown += share;
        }
        let Some((_, start, users)) =
            SITES.iter().find(|(function, ..)| name.contains(&format!(" in {function} (")))
        else {
            continue;
        };
        assert!(name.starts_with(start) && name.contains("sites.c:"), "{name}");
        assert_eq!(object["kind"], "allocated");
        for code in object["used_by"].as_array().unwrap() {
            let function = code["function"].as_str().unwrap_or("");
            let is_right = users.iter().any(|user| function.starts_with(user));
            *(if is_right { &mut right } else { &mut wrong }) += share * number(&code["share"]);
        }
        // One block in some 10,000 is in the log: chance is within 4 deviations.
        let count = number(&object["pieces"]);
        assert!((count / COUNT - 1.0).abs() < 0.45, "{name}: {count}");
    }
    println!("right {right:.3}, wrong {wrong:.3}, unknown {unknown:.3}");
    // What is named is right; how much can be named depends on the number of samples, which a busy machine has few of.
    assert!(right > 0.98 * (right + wrong) && right > 0.7 * (right + wrong + unknown), "{objects:#?}");
    assert!(right > 0.5, "{objects:#?}");
    let list = objects.iter().find(|object| object["name"].as_str().unwrap().contains(SITES[0].0)).unwrap();
    assert_eq!(list["verdict"]["rule"], "chain", "{list}");
}

#[test]
fn measuring_rows_of_an_array_are_an_object_whose_blocks_are_all_known() {
    let folder = Folder::new("rows");
    let Some(program) = program(&folder, "cc", "rows.c") else { return };
    let Some(result) = explained_with(&folder, "", &program.display().to_string()) else { return };
    let objects = result["objects"].as_array().unwrap();
    let rows =
        objects.iter().find(|object| object["name"].as_str().unwrap().starts_with("malloc in make_rows"));
    let rows = rows.unwrap_or_else(|| panic!("{objects:#?}"));
    assert_eq!((&rows["pieces"], &rows["size"]), (&300.into(), &(300 * 32768).into()), "{rows}");
    let user = rows["used_by"][0]["function"].as_str().unwrap();
    assert!(user.starts_with("read_rows"), "{rows}");
}
