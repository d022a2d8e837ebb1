//! What a text prints with few digits, by what it counts.

use super::numbers::plain;
use super::{Job, Side};

/// A block size that is printed with few digits (`65.5kB`): the one that the bytes of an I/O tell,
/// where it rounds to what is printed. Blocks are powers of two mostly, and multiples of a sector
/// nearly always.
pub fn sharpen(job: &mut Job) {
    let Some(printed) = job.option(&["bs"]).and_then(plain) else { return };
    if printed % 512.0 == 0.0 || job.block_rounding == 0.0 {
        return;
    }
    let of =
        |side: &Side| side.bytes.zip(side.ios).filter(|(_, ios)| *ios > 0.0).map(|(bytes, ios)| bytes / ios);
    let Some(each) = job.sides.iter().find_map(of) else { return };
    let fits = |size: &f64| (size - printed).abs() <= job.block_rounding && (size / each - 1.0).abs() < 0.005;
    let power = 2f64.powi(printed.log2().round() as i32);
    let sectors = (printed / 512.0).round() * 512.0;
    if let Some(size) = [power, sectors].into_iter().find(fits) {
        let bs = job.options.iter_mut().find(|(name, _)| name == "bs");
        bs.into_iter().for_each(|(_, value)| *value = format!("{size:.0}"));
    }
}

/// Rates from counts and times, where the printed ones have fewer digits and agree.
pub fn recount(job: &mut Job) {
    let block = job.option(&["bs"]).and_then(plain);
    for side in &mut job.sides {
        let counted =
            side.ios.zip(side.runtime_ms).filter(|(_, time)| *time > 0.0).map(|(ios, ms)| ios * 1e3 / ms);
        if let (Some(counted), Some(printed)) = (counted, side.iops)
            && (counted / printed - 1.0).abs() < 0.01
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
