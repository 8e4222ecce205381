use crate::runner::Folder;
use numakit_testing::until;

#[test]
fn commands_arrive_through_the_fifo_and_the_socket() {
    let folder = Folder::new("orders");
    let started = folder.start("record -i 10ms -e pgfault -o a.arrows");
    started.echo("label from the shell\n");
    started.echo("label one\nlabel two\n");
    assert_eq!(folder.run("ctl pause").code, 0);
    until!(folder.run("ctl status").out.contains("(paused)"));
    started.echo("resume\n");
    assert_eq!(folder.run("ctl interval 5ms").code, 0);
    until!(folder.run("ctl status").out.starts_with("interval 5ms,"));
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
    let rows = folder.read("a.arrows");
    let labels = rows.labels_without_losses();
    let expected =
        ["from the shell", "one", "two", "numakit:pause", "numakit:resume", "numakit:interval 5000000ns"];
    assert_eq!(labels, expected);
}

#[test]
fn a_sensor_is_disabled_and_enabled() {
    let folder = Folder::new("sensors");
    let started = folder.start("record -i 5ms -e pgfault,pressure* -o a.arrows");
    folder.run("ctl disable nodes").says(2, "'nodes' is not sampled here; sampled are: vmstat, pressure");
    assert_eq!(folder.run("ctl disable vmstat").code, 0);
    until!(folder.run("ctl status").out.contains(", off: vmstat,"));
    let off = folder.read("a.arrows").samples();
    until!(folder.read("a.arrows").samples() > off + 300);
    assert_eq!(folder.run("ctl enable vmstat").code, 0);
    until!(!folder.run("ctl status").out.contains("off:"));
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
    let rows = folder.read("a.arrows");
    let labels = rows.labels_without_losses();
    assert_eq!(labels, ["numakit:absent vmstat: switched off", "numakit:back vmstat"]);
    let measured = rows.values("vmstat.pgfault").len();
    assert!(measured >= 2 && measured + 100 < rows.samples(), "{measured} of {}", rows.samples());
}

#[test]
fn a_recording_is_switched_without_a_gap() {
    let folder = Folder::new("switch");
    let started = folder.start("record -i 1ms -e self -o a.arrows");
    until!({
        folder.run("ctl status").out.split(' ').nth(2).is_some_and(|n| n.parse::<u64>().unwrap() > 50)
    });
    let answer = folder.run("ctl record b.arrows");
    assert!(answer.out.contains("b.arrows"), "{}{}", answer.out, answer.err);
    folder.run("ctl record a.arrows").says(2, "exists");
    folder.run("ctl record no/such/place.arrows").says(2, "create the directory first");
    until!(folder.run("ctl status").out.contains("b.arrows"));
    folder.run("ctl stop").says(0, "");
    let done = started.end();
    let all = done.err.lines().last().and_then(|l| l.split(' ').nth(1)).unwrap().parse::<usize>().unwrap();
    let (a, b) = (folder.read("a.arrows"), folder.read("b.arrows"));
    assert!(a.samples() > 50 && b.samples() > 0 && a.damage.is_none() && b.damage.is_none());
    assert!(a.samples() + b.samples() >= all, "{} + {} of {all}", a.samples(), b.samples());
}

#[test]
fn garbage_floods_and_fragments_are_survived() {
    let folder = Folder::new("garbage");
    let started = folder.start("record -i 5ms -e pgfault -o a.arrows");
    started.echo("\u{0}\u{1}garbage\nlabel ");
    started.echo("in pieces\n");
    started.echo(&"x".repeat(1 << 20));
    started.echo("\n\n\nreboot\nlabel no end");
    until!(folder.run("ctl status").code == 0);
    started.echo("\nlabel after\n");
    folder.run("ctl stop").says(0, "");
    let done = started.end();
    assert_eq!(done.code, 0);
    assert!(
        done.err.contains("more than 4096 bytes was refused")
            && done.err.contains("unknown command 'reboot'"),
        "{}",
        done.err
    );
    assert_eq!(folder.read("a.arrows").labels_without_losses(), ["in pieces", "no end", "after"]);
}

#[test]
fn invalid_commands_are_refused_with_the_fix() {
    let folder = Folder::new("wrong");
    folder.run("ctl stop").says(2, "no numa is running");
    folder.run("ctl --pid 1 stop").says(2, "process 1 is not a running numa");
    folder.run("ctl dance").says(2, "the commands are record, close, label");
    folder.run("ctl interval 0ms").says(2, "from 100us to 1h");
}

#[test]
fn a_label_is_written_at_once_even_at_a_long_interval() {
    let folder = Folder::new("long");
    let started = folder.start("record -i 1h -e pgfault -o a.arrows");
    folder.run("ctl label now").says(0, "");
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
    assert_eq!(folder.read("a.arrows").labels_without_losses(), ["now"]);
}
