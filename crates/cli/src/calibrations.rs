//! What `numa doctor` says of the methods of taking samples: which one is taken, and where the samples of each land.

use numakit_model::Fix;
use numakit_sampling::calibration::{self, KeptCalibration};
use numakit_sampling::choice::{self, SampledProgram};
use numakit_sampling::{Landing, landing};
use numakit_sensors::checkup::CheckupItem;
use numakit_sys::permissions::Permissions;

/// The command that measures again.
const AGAIN: &str = "numa doctor --calibrate";

/// How 'numa explain' takes samples and where they land, and the calibrations that are kept. With `again`, all of these are
/// measured before.
pub fn check(again: bool) -> Vec<CheckupItem> {
    let mut items = vec![samples(again)];
    if again {
        let used = choose().map(|chosen| chosen.method).ok();
        for kept in calibration::known().iter().filter(|kept| Some(kept.calibration.method) != used) {
            items.extend(calibration::again(kept.calibration.method).err().map(|error| failed(&error)));
        }
    }
    items.extend(calibration::known().iter().map(shown));
    items
}

fn choose() -> Result<choice::Choice, choice::NoMethod> {
    // Of a program that can load the library, as most do.
    choice::choose(Permissions::own(), SampledProgram::Command(None), None)
}

fn samples(again: bool) -> CheckupItem {
    const ABOUT: &str = "samples for 'numa explain'";
    let chosen = match choose() {
        Ok(chosen) => chosen,
        Err(error) => return CheckupItem::lacking(ABOUT, "no samples can be taken", error.fix),
    };
    let measure = if again { calibration::again } else { calibration::of_method };
    match measure(chosen.method) {
        Ok(calibration) if calibration.landing() != Landing::Other => {
            let landing = landing::sentence(calibration.landing());
            CheckupItem::ok(ABOUT, format!("{chosen}; {landing} ({})", calibration.counts))
        }
        Ok(calibration) => {
            let fix = Fix::Step(format!(
                "{AGAIN}, when the machine is idle; if that says the same: run on a machine where samples land behind the \
                 instruction that waited"
            ));
            CheckupItem::note(ABOUT, format!("{chosen}; {calibration}; this is not kept"), fix)
        }
        Err(error) => CheckupItem { about: ABOUT.to_owned(), ..failed(&error) },
    }
}

fn failed(error: &numakit_sampling::MethodError) -> CheckupItem {
    let fix = Fix::Step(format!("{AGAIN}, when the machine is idle"));
    CheckupItem::note("calibration", error.to_string(), fix)
}

/// A calibration that is kept. One that was measured beside much else may be a wrong one.
fn shown(kept: &KeptCalibration) -> CheckupItem {
    let calibration = kept.calibration;
    let about = format!("kept calibration of {}", calibration.method);
    let landing = landing::sentence(calibration.landing());
    let fix = |again: &str| Fix::Step(format!("{AGAIN}{again}"));
    match kept.moment {
        Some(moment) if moment.was_busy() => {
            let seen = format!("{landing}; measured {moment}, so other programs used all CPUs");
            CheckupItem::note(about, seen, fix(", when the machine is idle"))
        }
        Some(moment) => {
            CheckupItem::ok(about, format!("{landing}; measured {moment}; '{AGAIN}' measures it again"))
        }
        None => {
            let seen = format!("{landing}; when it was measured, and how busy the machine was, is not known");
            CheckupItem::note(about, seen, fix(""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sampling::calibration::CalibrationMoment;
    use numakit_sensors::checkup::FindingState;

    #[test]
    fn a_kept_calibration_has_its_age_and_its_load_and_the_fix_if_it_is_doubtful() {
        let line = "ptrace\ta CPU\tguest\t6.18\t0 24 0 0 0";
        let mut kept = calibration::parse(line).unwrap();
        let mut of = |load: Option<f64>| {
            let time = numakit_sys::clock::utc() / 1_000_000_000 - 7260;
            kept.moment = load.map(|load| CalibrationMoment { time, load, cpus: 4 });
            let item = shown(&kept);
            (item.state, item.seen, item.fix.map(|fix| fix.to_string()))
        };
        let (state, seen, fix) = of(Some(0.25));
        assert!(state == FindingState::Ok && fix.is_none(), "{fix:?}");
        assert!(seen.starts_with("samples land one instruction behind"), "{seen}");
        assert!(seen.contains("(2 h 1 min ago), load average 0.25 on 4 CPUs; 'numa doctor --cal"), "{seen}");
        let (state, seen, fix) = of(Some(9.0));
        assert!(state == FindingState::Note && seen.contains("9.00 on 4 CPUs, so other"), "{seen}");
        assert_eq!(fix.as_deref(), Some("numa doctor --calibrate, when the machine is idle"));
        let (state, seen, fix) = of(None);
        assert!(state == FindingState::Note && seen.ends_with("is not known"), "{seen}");
        assert_eq!(fix.as_deref(), Some("numa doctor --calibrate"));
    }
}
