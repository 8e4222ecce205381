use crate::runner::Folder;

#[test]
fn formulas_are_columns_instead_of_series() {
    let folder = Folder::new("formulas");
    let csv = folder.run("stat -i 5ms -n 2 --csv -m fault_rate,free");
    assert_eq!(csv.code, 0, "{}", csv.err);
    assert!(csv.out.starts_with("time,label,fault_rate,free\n"), "{}", csv.out);
    folder.run("stat -m fault_rat").says(2, "unknown formula 'fault_rat'; nearest: fault_rate");
    folder.run("stat -m free -e pgfault").says(2, "--events");
    assert_eq!(folder.run("stat -i 10ms -n 1 -m user --per cpu").code, 0);
}

#[test]
fn files_of_formulas_add_and_replace() {
    let folder = Folder::new("formulafiles");
    std::fs::write(folder.path("mine.txt"), "twice: count/s = 2 * fault_rate\n    Twice.\n").unwrap();
    std::fs::write(folder.path("more.txt"), "fault_rate: count/s = vmstat.pgmajfault\n").unwrap();
    let csv = folder.run("stat -i 5ms -n 2 --csv -m twice --formulas mine.txt");
    assert!(csv.out.starts_with("time,label,twice\n"), "{}{}", csv.out, csv.err);
    let list = folder.run("list --formulas mine.txt --formulas more.txt fault_rate").out;
    assert!(list.contains("From more.txt. Replaces the one that is built in."), "{list}");
    std::fs::create_dir_all(folder.path("config/numakit")).unwrap();
    std::fs::copy(folder.path("mine.txt"), folder.path("config/numakit/formulas.txt")).unwrap();
    let output = folder.numa("list twice").env("XDG_CONFIG_HOME", folder.path("config")).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("config/numakit/formulas.txt"));
}

#[test]
fn mistakes_in_a_file_are_reported_before_anything_is_measured() {
    let folder = Folder::new("formulafaults");
    std::fs::write(folder.path("bad.txt"), "\nbad: bytes = node.MemFree + vmstat.pgfault\n").unwrap();
    for verb in ["stat -n 1", "list", "show x.arrows"] {
        let expected = "bad.txt, line 2: bad: node.MemFree is bytes and vmstat.pgfault is count/s: these cannot be added";
        folder.run(&format!("{verb} --formulas bad.txt")).says(2, expected);
    }
    folder.run("stat --formulas none.txt").says(2, "cannot read the formulas in none.txt");
    std::fs::write(folder.path("latin.txt"), b"# \xe4\n").unwrap();
    folder.run("stat --formulas latin.txt").says(2, "latin.txt is not UTF-8 text");
}
