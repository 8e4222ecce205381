//! What packages run when they are installed and removed: the same steps for dpkg and rpm, which call them differently.

/// The functions that remove what numa has kept.
const REMOVED: &str = include_str!("removed.sh");
/// The unit of systemd, which is off until an administrator enables it.
const UNIT: &str = "numakit.service";

/// A step for systemd, where it runs.
fn systemctl(words: &str) -> String {
    format!("    if [ -d /run/systemd/system ]; then systemctl {words} {UNIT} >/dev/null || true; fi\n")
}

/// Ends the unit. Where systemd does not run, as in an image that is built, what enabled it is a link.
fn disabled() -> String {
    let linked =
        format!("    if [ ! -d /run/systemd/system ]; then rm -f /etc/systemd/system/*.wants/{UNIT}; fi\n");
    systemctl("disable --now") + &linked
}

/// After an upgrade the unit runs the new program, if it ran.
fn restarted() -> String {
    let reload = "    if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n".to_owned();
    reload + &systemctl("try-restart")
}

/// The scripts of dpkg, by name.
pub fn of_dpkg() -> [(&'static str, String); 3] {
    let script = |functions: &str, cases: &str| {
        format!("#!/bin/sh\nset -e\n{functions}\ncase \"$1\" in\n{cases}esac\n")
    };
    let restarted = restarted();
    let stopped = disabled();
    [
        ("postinst", script("", &format!("configure)\n{restarted}    ;;\n"))),
        ("prerm", script("", &format!("remove)\n{stopped}    ;;\n"))),
        ("postrm", script(REMOVED, "remove | purge)\n    remove_kept 'dpkg --purge numakit'\n    ;;\n")),
    ]
}

/// The sections of scripts in a spec of rpm. `$1` is the number of versions that are installed afterwards.
pub fn of_rpm() -> String {
    let repeat = "rm -r /var/cache/numakit /dev/shm/numakit-cores";
    let section = |name: &str, functions: &str, condition: &str, steps: &str| {
        format!("%{name}\n{functions}if [ \"$1\" {condition} ]; then\n{steps}fi\n\n")
    };
    let loader = "if [ -x /sbin/ldconfig ]; then /sbin/ldconfig; fi\n";
    [
        section("post", loader, "-ge 1", &restarted()),
        section("preun", "", "-eq 0", &disabled()),
        section("postun", &format!("{REMOVED}\n{loader}"), "-eq 0", &format!("    remove_kept '{repeat}'\n")),
    ]
    .concat()
}
