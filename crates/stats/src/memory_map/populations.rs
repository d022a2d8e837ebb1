//! Which sets of channels could make two speeds, and what speaks for and against each.
//!
//! Firmware interleaves equal modules over sets of channels. A chunk that lies in a set of w
//! channels gets the bandwidth of w, so two sets of w1 and w2 channels make two speeds with a ratio
//! of w1 / w2, the slow one in w2 / (w1 + w2) of the memory. Cores that cannot use w1 channels see
//! a smaller ratio. So a ratio alone names nothing: a candidate needs the share, or what firmware
//! reports the channels, as well.

/// What was measured, and what firmware reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// The fastest speed over the slowest, above 1.
    pub ratio: f64,
    /// `[least, most]` share of the node's memory that can be slow: what was not measured may be
    /// slow or fast.
    pub slow_share: Option<[f64; 2]>,
    /// Populated channels of the node's socket.
    pub channels: Option<usize>,
}

/// What one kind of evidence says about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    For,
    /// It could be.
    Open,
    Against,
}

impl Support {
    pub fn word(self) -> &'static str {
        match self {
            Support::For => "for it",
            Support::Open => "could be",
            Support::Against => "against it",
        }
    }
}

/// Two sets of channels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Channels of the wide set and of the narrow one.
    pub sets: [usize; 2],
    /// By ratio, by share, by channels; `None` where that is not known.
    pub ratio: Support,
    pub share: Option<Support>,
    pub channels: Option<Support>,
}

impl Candidate {
    /// What the model expects: ratio of the speeds, and share of the slow part.
    pub fn expected(&self) -> [f64; 2] {
        let [wide, narrow] = self.sets.map(|channels| channels as f64);
        [wide / narrow, narrow / (wide + narrow)]
    }

    /// Bandwidth in the fast and in the slow part, as shares of that of all channels together.
    pub fn bandwidth_shares(&self) -> [f64; 2] {
        let [wide, narrow] = self.sets.map(|channels| channels as f64);
        [wide / (wide + narrow), narrow / (wide + narrow)]
    }

    /// Whether it may be named: nothing is against it, and for it is the share, or the number of
    /// channels with the ratio.
    pub fn stands(&self) -> bool {
        let supports = [Some(self.ratio), self.share, self.channels];
        let is_against = supports.contains(&Some(Support::Against));
        let by_channels = self.channels == Some(Support::For) && self.ratio == Support::For;
        !is_against && (by_channels || self.share == Some(Support::For))
    }
}

/// No socket has more channels than this.
const MAX_CHANNELS: usize = 16;
/// Ratios this far from the expected one, as a factor, still fit it.
const NEAR: f64 = 1.12;
/// Shares this far from the expected one still fit it: firmware and devices take their part of the
/// address space.
const NEAR_SHARE: f64 = 0.03;
/// If a larger share of the memory was not measured, the slow share cannot support a candidate.
const MAX_UNKNOWN_SHARE: f64 = 0.2;

/// Every pair of sets that the ratio does not rule out, the best supported first. If the number of
/// channels is unknown, only sets up to 4 + 4 are tried, and 6 + 1 and 8 + 2, which vendors
/// describe.
pub fn candidates(known: &Known) -> Vec<Candidate> {
    let described = |wide: usize, narrow: usize| wide <= 4 || [(6, 1), (8, 2)].contains(&(wide, narrow));
    let sets = (2..MAX_CHANNELS).flat_map(|wide| (1..wide).map(move |narrow| [wide, narrow]));
    let looked_at = sets.filter(|[wide, narrow]| match known.channels {
        Some(channels) => wide + narrow == channels,
        None => described(*wide, *narrow),
    });
    let mut all: Vec<Candidate> = looked_at
        .map(|sets| judged(sets, known))
        .filter(|candidate| candidate.ratio != Support::Against || candidate.channels == Some(Support::For))
        .collect();
    let weight = |candidate: &Candidate| {
        let supports = [Some(candidate.ratio), candidate.share, candidate.channels];
        let count = |wanted: Support| supports.iter().filter(|found| **found == Some(wanted)).count();
        let distance = (candidate.expected()[0] / known.ratio).ln().abs();
        // Sort keys must be integers: millionths suffice.
        (count(Support::Against), std::cmp::Reverse(count(Support::For)), (distance * 1e6) as u64)
    };
    all.sort_by_key(weight);
    all
}

fn judged(sets: [usize; 2], known: &Known) -> Candidate {
    let mut candidate = Candidate { sets, ratio: Support::Open, share: None, channels: None };
    let [ratio, share] = candidate.expected();
    candidate.ratio = if known.ratio > ratio * NEAR {
        Support::Against
    } else if known.ratio >= ratio / NEAR {
        Support::For
    } else {
        // The cores may be unable to use the wide set.
        Support::Open
    };
    candidate.share = known.slow_share.map(|[least, most]| {
        if share < least - NEAR_SHARE || share > most + NEAR_SHARE {
            Support::Against
        } else if most - least > MAX_UNKNOWN_SHARE {
            Support::Open
        } else {
            Support::For
        }
    });
    candidate.channels = known
        .channels
        .map(|channels| if sets.iter().sum::<usize>() == channels { Support::For } else { Support::Against });
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_and_one_by_ratio_and_share() {
        let known = Known { ratio: 2.95, slow_share: Some([0.24, 0.27]), channels: None };
        let all = candidates(&known);
        assert_eq!(all[0].sets, [3, 1]);
        assert!(all[0].stands() && all[0].ratio == Support::For);
        assert_eq!((all[0].expected(), all[0].bandwidth_shares()), ([3.0, 0.25], [0.75, 0.25]));
        assert!(all.iter().filter(|one| one.stands()).all(|one| one.sets == [3, 1]), "{all:?}");
        // The same where cores cannot use three channels.
        let known = Known { ratio: 1.8, channels: Some(4), ..known };
        let first = candidates(&known)[0];
        assert!(first.sets == [3, 1] && first.stands() && first.ratio == Support::Open);
    }

    #[test]
    fn a_ratio_alone_names_nothing() {
        let known = Known { ratio: 1.21, ..Known::default() };
        let all = candidates(&known);
        assert!(!all.is_empty() && all.iter().all(|one| !one.stands()), "{all:?}");
        let with_share = candidates(&Known { ratio: 1.21, slow_share: Some([0.45, 0.5]), channels: Some(6) });
        assert!(with_share.iter().all(|one| !one.stands()), "{with_share:?}");
    }

    #[test]
    fn channels_that_firmware_reports_rule_others_out() {
        let known = Known { ratio: 3.9, slow_share: Some([0.15, 0.5]), channels: Some(5) };
        let all = candidates(&known);
        assert_eq!(all.iter().map(|one| one.sets).collect::<Vec<_>>(), [[4, 1], [3, 2]]);
        assert!(all[0].stands() && !all[1].stands(), "{all:?}");
        // 7 of 8: 6 + 1 or 4 + 3, distinguished by the ratio.
        let seven = |ratio| candidates(&Known { ratio, slow_share: None, channels: Some(7) })[0].sets;
        assert_eq!((seven(5.8), seven(1.32)), ([6, 1], [4, 3]));
        // Even channels that firmware may have cut into equal sets make no two speeds.
        assert_eq!(candidates(&Known { ratio: 1.5, slow_share: None, channels: Some(2) }), []);
    }
}
