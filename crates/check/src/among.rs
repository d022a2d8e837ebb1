//! A host compared with its peers as a demand: `[peers]` with `not_slower = true`.

use super::demand::{Demand, demand};
use super::limit::DemandStatus;
use super::subject::Subject;

/// What its demands are grouped under.
pub const PEERS: &str = "peers";

/// How a host compares with hosts of the same make-up.
#[derive(Clone, Debug, PartialEq)]
pub enum PeerResult {
    /// It was compared with none, and why.
    Alone(String),
    /// It is as fast as this number of peers.
    Level(usize),
    /// It is behind them: what `assay peers` finds, and what it takes for the cause.
    Slower(String, String),
}

pub(super) fn not_slower(subject: &Subject) -> Demand {
    let own = demand(PEERS, "speed among peers", "not_slower", "not behind".to_string());
    match &subject.among {
        None => {
            Demand { why: "no other runs: check several at once, or name them in [peers] runs".into(), ..own }
        }
        Some(PeerResult::Alone(why)) => Demand { why: why.clone(), ..own },
        Some(PeerResult::Level(peers)) => {
            Demand { measured: format!("not behind {peers} peers"), standing: DemandStatus::Met, ..own }
        }
        Some(PeerResult::Slower(headline, cause)) => {
            Demand { measured: headline.clone(), why: cause.clone(), standing: DemandStatus::Missed, ..own }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Spec, Verdict, check};

    #[test]
    fn only_a_host_that_was_held_against_others_passes_or_fails() {
        let spec = Spec::read("[peers]\nnot_slower = true\n").expect("a spec");
        for (among, verdict) in [
            (None, Verdict::CannotTell),
            (Some(PeerResult::Alone("3 hosts have its make-up".into())), Verdict::CannotTell),
            (Some(PeerResult::Level(7)), Verdict::Accept),
            (Some(PeerResult::Slower("Host a is 20 % behind".into(), String::new())), Verdict::Reject),
        ] {
            let subject = Subject { among: among.clone(), ..Subject::default() };
            assert_eq!(check(&spec, &subject, 0.0).expect("an outcome").verdict, verdict, "{among:?}");
        }
    }
}
