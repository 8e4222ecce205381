use crate::runner::Folder;

#[test]
fn raw_values_and_rates_are_exported() {
    let folder = Folder::new("csv");
    folder.run("record -i 5ms -e pgfault,nr_free_pages -o a.arrows -- sleep 0.05").says(0, "");
    let raw = folder.run("export a.arrows --to csv");
    let lines: Vec<&str> = raw.out.lines().collect();
    assert!(lines[0].starts_with("time,took,label,vmstat."), "{}", lines[0]);
    let rows = folder.read("a.arrows");
    assert_eq!(lines.len(), 1 + rows.samples() + rows.labels().len());
    let first = rows.values("vmstat.nr_free_pages")[0].to_string();
    assert!(lines[1].split(',').any(|f| f == first));
    let rates = folder.run("export a.arrows --to csv --rates");
    assert_eq!(rates.out.lines().count(), lines.len());
    assert_ne!(rates.out, raw.out);
}

#[test]
fn the_originals_form_goes_out_and_comes_back() {
    let folder = Folder::new("json");
    folder.run("record -i 5ms -e pgfault,pgfree -o a.arrows -- sleep 0.05").says(0, "");
    folder.run("export a.arrows --to numascope -o a.json").says(0, "");
    folder.run("export a.arrows --to numascope -o a.json").says(2, "does not exist");
    let (rows, again) = (folder.read("a.arrows"), folder.read("a.json"));
    assert_eq!(again.samples(), rows.samples() - 1, "the first row has no rate");
    assert_eq!(again.labels(), rows.labels());
    let json = folder.run("export a.json --to csv");
    assert_eq!((json.code, json.out.lines().count()), (0, 1 + again.samples() + again.labels().len()));
}

#[test]
fn a_damaged_recording_is_exported_as_far_as_it_goes() {
    let folder = Folder::new("damaged");
    folder.run("record -i 1ms -e pgfault -o a.arrows -- sleep 0.05").says(0, "");
    let bytes = std::fs::read(folder.path("a.arrows")).unwrap();
    std::fs::write(folder.path("b.arrows"), &bytes[..bytes.len() - 20]).unwrap();
    folder.run("export b.arrows --to csv").says(1, "could not be read");
    std::fs::write(folder.path("c.arrows"), b"nonsense").unwrap();
    folder.run("export c.arrows --to csv").says(2, "is no recording");
    folder.run("export none.arrows --to csv").says(2, "cannot read none.arrows");
}
