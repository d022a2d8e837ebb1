//! Where the memory of a team's members lies physically, asked for in words: a member answers a
//! round with one.

use model::PagePlaces;
use sys::counters::frames_at;
use sys::crew::Team;

/// Blocks that a word holds, of 21 bits each: blocks of 64 MiB reach to 128 TiB.
const IN_A_WORD: usize = 3;
const BITS: u32 = 21;
/// A page that is not in memory, or that lies beyond.
const UNKNOWN: u32 = (1 << BITS) - 1;

/// The physical blocks of up to `looks` pages, evenly over ranges of this process (address, bytes).
/// Empty where the kernel hides them.
pub fn blocks(ranges: &[(usize, usize)], looks: usize) -> Vec<u32> {
    let page = rustix::param::page_size() as u64;
    let all: usize = ranges.iter().map(|(_, bytes)| *bytes).sum();
    let of = |range: &(usize, usize)| {
        let own = (looks as f64 * range.1 as f64 / all.max(1) as f64).ceil() as usize;
        frames_at(*range, own).unwrap_or_default()
    };
    let block = |frame: u64| u32::try_from(frame * page / PagePlaces::BLOCK_BYTES).unwrap_or(UNKNOWN);
    ranges.iter().flat_map(of).flatten().map(block).collect()
}

/// The blocks of round `round`, as a member answers.
pub fn word(blocks: &[u32], round: usize) -> u64 {
    let one =
        |at: usize| u64::from(blocks.get(round * IN_A_WORD + at).copied().unwrap_or(UNKNOWN).min(UNKNOWN));
    (0..IN_A_WORD).fold(0, |word, at| word << BITS | one(at))
}

/// Counts what all members answer to `question(round)` until none has a further block, or after
/// `looks` rounds; `None` where no member found any page.
pub fn ask(
    team: &mut Team,
    looks: usize,
    question: impl Fn(usize) -> u64,
) -> anyhow::Result<Option<PagePlaces>> {
    let mut found: Vec<u32> = Vec::new();
    for round in 0..looks {
        let laps = team.round(question(round))?;
        let before = found.len();
        let blocks = |word: u64| (0..IN_A_WORD as u32).map(move |at| (word >> (at * BITS)) as u32 & UNKNOWN);
        found.extend(laps.iter().flat_map(|lap| blocks(lap.answer)).filter(|block| *block != UNKNOWN));
        if found.len() == before {
            break;
        }
    }
    Ok((!found.is_empty()).then(|| PagePlaces::count(found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::CpuSet;
    use sys::clock::Clock;
    use sys::crew::Body;

    #[test]
    fn members_answer_with_all_their_blocks() {
        let cpu = CpuSet::one(sys::affinity::current_cpu().unwrap_or(0));
        let own: Vec<u32> = vec![5, 5, 9, UNKNOWN, 7, 1 << 20, 5];
        let known = own.clone();
        let build = move |_: usize| -> anyhow::Result<Body> {
            let known = known.clone();
            Ok(Box::new(move |round| word(&known, round as usize)))
        };
        let mut team = Team::start(&[cpu], Clock::Raw, build).expect("a team of one");
        let found = ask(&mut team, own.len(), |round| round as u64).expect("answers").expect("blocks");
        assert_eq!(found, PagePlaces::count([5, 5, 5, 7, 9, 1 << 20]));
        assert_eq!(ask(&mut team, 3, |_| 1000).expect("answers"), None, "beyond the last block");
    }
}
