//! What a result would be on another machine.

use super::percent;
use numakit_explain::SeenProcess;
use numakit_explain::projection::Projection;
use numakit_findings::explained::JudgedProjection;

/// A part of the time that is too large to be passed over.
const MUCH: f64 = 0.05;

/// The remote share there, and the objects of these processes.
pub fn text(judged: &JudgedProjection, processes: &[SeenProcess], rows: usize) -> String {
    let out = format!("\n{}\n", sentence(&judged.projection));
    match judged.projection.why_not {
        Some(_) => out,
        None => out + &super::objects::table(&judged.objects, (processes, None), "MEM%", rows),
    }
}

/// What would be remote there, or why that is not told.
pub fn sentence(projection: &Projection) -> String {
    let machine = &projection.machine;
    if let Some(why) = &projection.why_not {
        return format!("As on {machine}: not told, since {why}.");
    }
    let threads = match projection.threads {
        1 => "its thread".to_owned(),
        count => format!("its {count} threads"),
    };
    let mut out = format!(
        "As on {machine}, with {threads} spread over the nodes and pages where they are touched first: "
    );
    out.push_str(&match projection.remote_share {
        Some(far) => format!(
            "of the time at memory, {} would be at memory of other nodes ({} to {})",
            percent(far.share),
            percent(far.low),
            percent(far.high)
        ),
        None => "too little time is at memory outside of the caches to tell what would be remote".to_owned(),
    });
    if projection.unknown > MUCH {
        out.push_str(&format!(
            "; {} more is at pages whose first touch was not seen, or at unknown addresses",
            percent(projection.unknown)
        ));
    }
    out + "."
}
