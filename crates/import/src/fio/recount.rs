//! What a text prints with few digits, by what it counts; and whether amounts are those of what
//! was announced.

use super::crew::ways_of;
use super::numbers::plain;
use super::{Direction, DirectionStats, Job};

/// A block size that is printed with few digits (`65.5kB`): the one that the bytes of an I/O give,
/// where it rounds to what is printed. Blocks are powers of two mostly, and multiples of a sector
/// nearly always.
pub fn sharpen(job: &mut Job) {
    let Some(printed) = job.option(&["bs"]).and_then(plain) else { return };
    if printed % 512.0 == 0.0 || job.block_rounding == 0.0 {
        return;
    }
    let of = |side: &DirectionStats| {
        side.bytes.zip(side.ios).filter(|(_, ios)| *ios > 0.0).map(|(bytes, ios)| bytes / ios)
    };
    let Some(each) = job.sides.iter().find_map(of) else { return };
    let fits = |size: &f64| (size - printed).abs() <= job.block_rounding && (size / each - 1.0).abs() < 0.005;
    let power = 2f64.powi(printed.log2().round() as i32);
    let sectors = (printed / 512.0).round() * 512.0;
    if let Some(size) = [power, sectors].into_iter().find(fits) {
        let bs = job.options.iter_mut().find(|(name, _)| name == "bs");
        bs.into_iter().for_each(|(_, value)| *value = format!("{size:.0}"));
    }
}

/// How many I/Os were in flight at least, by `1=0.1%, 2=0.1%, ..., 32=100.0%, >=64=0.0%`.
pub fn deepest(shares: &str) -> f64 {
    let seen = |part: &str| -> Option<f64> {
        let (depth, share) = part.trim().trim_start_matches(">=").split_once('=')?;
        plain(share.trim_end_matches('%')).filter(|share| *share > 0.0)?;
        plain(depth)
    };
    shares.split(',').filter_map(seen).fold(0.0, f64::max)
}

/// A depth that is less than what was in flight was cut where digits behind it make it as much:
/// `iodepth=3` of 32.
pub fn deepen(job: &mut Job, deepest: f64) {
    // Depths are counted up to the next power of two; the last count has no end.
    let end = if deepest < 64.0 { deepest * 2.0 } else { f64::INFINITY };
    let longer = |depth: f64| [10.0, 100.0, 1000.0].map(|scale| (depth * scale, (depth + 1.0) * scale));
    let is_cut = |depth: f64| {
        depth < deepest && longer(depth).into_iter().any(|(from, to)| from < end && to > deepest)
    };
    if !job.merged {
        job.options.retain(|(name, value)| name != "iodepth" || !plain(value).is_some_and(is_cut));
    }
}

/// Rates from counts and times, where the printed ones have fewer digits and agree.
pub fn recount(job: &mut Job) {
    let block = job.option(&["bs"]).and_then(plain);
    for side in job.sides.iter_mut().chain(&mut job.unified) {
        let counted =
            side.ios.zip(side.runtime_ms).filter(|(_, time)| *time > 0.0).map(|(ios, ms)| ios * 1e3 / ms);
        if let (Some(counted), Some(printed)) = (counted, side.iops)
            && ((counted / printed - 1.0).abs() < 0.01
                // Whole numbers are cut off, or rounded.
                || printed.fract() == 0.0 && printed < 1000.0 && (counted - printed).abs() < 1.0
                || counted > printed && counted < printed + side.iops_carry)
        {
            side.iops = Some(counted);
            let bandwidth = block.map(|block| block * counted);
            let near = |one: &f64| side.bandwidth.is_some_and(|printed| (one / printed - 1.0).abs() < 0.01);
            side.bandwidth = bandwidth.filter(near).or(side.bandwidth);
        }
        // An amount that lost its carry is that of its I/Os.
        let moved = side.ios.zip(block).map(|(ios, block)| ios * block);
        if let (Some(bytes), Some(moved)) = (side.bytes, moved)
            && moved > bytes
            && moved < bytes + side.bytes_carry
        {
            side.bytes = Some(moved);
        }
    }
}

/// Whether what a job did can be what these options ask for: one of its directions, in blocks of
/// its size.
pub fn fits(job: &Job, options: &[(String, String)]) -> bool {
    let option =
        |name: &str| options.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str());
    let ways = ways_of(option("rw"));
    let mut went = Direction::ALL.into_iter().filter(|way| !job.side(*way).is_empty()).peekable();
    if went.peek().is_none() || job.error != 0 {
        return true;
    }
    let mut meant = went.filter(|way| ways.contains(way)).peekable();
    let sizes: Vec<&str> = option("bs").split(',').collect();
    let in_flight = plain(option("iodepth")).unwrap_or(1.0) * job.jobs.unwrap_or(1) as f64;
    meant.peek().is_some()
        && meant.all(|way| {
            let size = sizes.get(way as usize).or(sizes.last()).and_then(|size| plain(size));
            size.is_none_or(|block| is_of(job.side(way), block, in_flight))
        })
}

/// Whether what went this way are I/Os of this block: bytes over I/Os, or bandwidth over IOPS where
/// the former are not given, within 2 %, what was in flight at the ends, and a carry.
pub fn is_of(side: &DirectionStats, block: f64, in_flight: f64) -> bool {
    let amounts = side.bytes.zip(side.ios).or(side.bandwidth.zip(side.iops));
    let Some((bytes, ios)) = amounts.filter(|(bytes, ios)| *bytes > 0.0 && *ios > 0.0) else { return true };
    let wanted = ios * block;
    let is_carried = wanted > bytes && wanted < bytes + side.bytes_carry;
    is_carried || (wanted - bytes).abs() <= 0.02 * wanted.max(bytes) + (in_flight + 1.0) * block
}
