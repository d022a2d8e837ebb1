//! Blocks that name themselves, written and read back: `disk.verify`.

use anyhow::{Context, bail};
use model::vocabulary::disk as ids;

use super::cases::{DEVICE, Shape, params, shapes};
use super::engine::{self, Engine, complaint};
use super::pattern;
use super::target::Target;
use crate::file::directory_of;
use crate::sampler::whole::Piece;
use crate::{Point, Sampler, WrongAnswer};
use model::Case;
use sys::scratch;

/// No more is written to a raw device in one generation, bytes.
const MAX_BYTES: u64 = 1 << 30;

pub fn run(case: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let mut shape = *shapes(case).first().context("the case has no point")?;
    let (clock, windows) = (sampler.clock(), sampler.windows());
    let refused = match case.inputs.contains_key(DEVICE) {
        true => None,
        false => scratch::direct_refused(&directory_of(case)),
    };
    if let Some(why) = refused {
        bail!("not available here: O_DIRECT is refused ({why}), so reads cannot bypass the page cache");
    }
    let target = Target::prepare(case, 1, true, sampler.seed())?;
    let (kind, note) = engine::choose(None);
    sampler.facts().notes.extend(note);
    if kind == engine::Kind::Psync {
        shape.depth = 1;
    }
    let (file, base) = target.open(0)?;
    let mut engine = Engine::new(kind, file, shape.block, shape.depth, false)?;
    sampler.facts().notes.extend(engine.note().map(str::to_string));
    let bytes = target.bytes.min(MAX_BYTES) / shape.block * shape.block;
    let at = params(case.id(), shape);
    let mut generation = 0;
    // The first one warms up, and what follows finds an older one in its place.
    sampler.whole_pieces(Point::new(ids::metric::BANDWIDTH, 1.0).at(at), &[], windows.count, |_| {
        if generation == 0 {
            generation += 1;
            pass(&mut engine, shape, (base, bytes), generation, true)?;
        }
        generation += 1;
        let begin = clock.now();
        pass(&mut engine, shape, (base, bytes), generation, true)?;
        target.sync()?;
        target.drop_cached()?;
        pass(&mut engine, shape, (base, bytes), generation, false)?;
        Ok(Piece { work: 2.0 * bytes as f64, ns: clock.now() - begin, notes: Vec::new() })
    })
}

/// Goes through the region once: writes a generation, or reads and compares it.
fn pass(
    engine: &mut Engine,
    shape: Shape,
    (base, bytes): (u64, u64),
    generation: u64,
    write: bool,
) -> anyhow::Result<()> {
    let block = shape.block;
    let mut offsets = (0..bytes / block).map(|index| base + index * block);
    let mut at = vec![0; shape.depth as usize];
    let mut idle: Vec<u32> = (0..shape.depth).collect();
    let (mut done, mut open) = (Vec::new(), 0);
    loop {
        while let Some(slot) = idle.pop() {
            let Some(offset) = offsets.next() else { break };
            if write {
                pattern::fill(engine.buffer(slot), offset, generation);
            }
            at[slot as usize] = offset;
            engine.push(slot, write, offset, block as u32);
            open += 1;
        }
        if open == 0 {
            return Ok(());
        }
        engine.enter(1, None).context("cannot wait for I/O")?;
        engine.reap(&mut done);
        for (slot, result) in done.drain(..) {
            let offset = at[slot as usize];
            if let Some(words) = complaint(write, offset, block as u32, result) {
                bail!(words);
            }
            let wrong = if write { None } else { pattern::wrong(engine.buffer(slot), offset, generation) };
            if let Some(words) = wrong {
                return Err(WrongAnswer(words).into());
            }
            idle.push(slot);
            open -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Kind;

    #[test]
    fn what_was_written_is_found_and_what_changed_is_named() {
        let shape = Shape { block: 8192, depth: 3 };
        for kind in [Kind::Uring, Kind::Psync] {
            let (kind, depth) = match (kind, engine::choose(None).0) {
                (Kind::Uring, Kind::Uring) => (Kind::Uring, 3),
                _ => (Kind::Psync, 1),
            };
            let shape = Shape { depth, ..shape };
            let file = tempfile::tempfile().expect("a file");
            let copy = file.try_clone().expect("a copy");
            let mut engine =
                Engine::new(kind, copy.into(), shape.block, shape.depth, false).expect("an engine");
            let region = (8192, 10 * 8192);
            for generation in 1..3 {
                pass(&mut engine, shape, region, generation, true).expect("written");
                pass(&mut engine, shape, region, generation, false).expect("as written");
            }
            let error = pass(&mut engine, shape, region, 3, false).expect_err("the generation before");
            let wrong = error.downcast_ref::<WrongAnswer>().expect("a wrong answer");
            assert!(wrong.0.contains("the older generation 2"), "{}", wrong.0);
            rustix::io::pwrite(&file, b"damage", 50_000).expect("written");
            let mut engine =
                Engine::new(kind, file.into(), shape.block, shape.depth, false).expect("an engine");
            let error = pass(&mut engine, shape, region, 2, false).expect_err("damaged");
            assert!(error.to_string().contains("wrong data at file offset 50000, generation 2"), "{error}");
        }
    }
}
