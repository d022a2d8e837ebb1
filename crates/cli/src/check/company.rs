//! The peers of the hosts of a spec with `[peers]`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::peers::fleet_of_all;
use ::check::{PeerResult, Subject};
use compare::peers::{self, Fleet, HostStanding, MIN_HOSTS, Peers};
use model::{Summary, percent};

/// Hosts that are compared with each other.
pub struct Company {
    found: Peers,
    /// Places of the hosts of each name.
    places: HashMap<String, Vec<usize>>,
}

impl Company {
    /// Of all runs that paths name, without those that cannot be read.
    pub fn of_files(paths: &[PathBuf]) -> Company {
        Company::of(fleet_of_all(paths))
    }

    /// Of a run that was just measured, and those that a path names.
    pub fn of_run(summary: Summary, file: &str, path: &Path) -> Company {
        let mut fleet = fleet_of_all(&[path.to_path_buf()]);
        fleet.add((summary, file.to_string()).into());
        Company::of(fleet)
    }

    fn of(fleet: Fleet) -> Company {
        let found = peers::judge(fleet);
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, host) in found.fleet.hosts.iter().enumerate() {
            places.entry(host.name.clone()).or_default().push(place);
        }
        Company { found, places }
    }

    /// How a host's run compares with those of its peers.
    pub fn among(&self, subject: &Subject) -> PeerResult {
        let Peers { fleet, groups, standings, suspected, .. } = &self.found;
        let places = self.places.get(&subject.host).map_or(&[][..], Vec::as_slice);
        let is_run = |place: &&usize| fleet.hosts[**place].started == subject.started;
        let is_file = |place: &&usize| fleet.hosts[**place].file == subject.file;
        // A run may be there twice, under two names.
        let same = places.iter().filter(is_run);
        let Some(place) = same.clone().find(is_file).or_else(|| same.clone().next()) else {
            if let Some(told) = places.iter().find_map(|place| before(&standings[*place], subject)) {
                return told;
            }
            let left_out = fleet.left_out.iter().find(|(file, _)| *file == subject.file);
            return PeerResult::Alone(match (left_out, places.first()) {
                (Some((_, why)), _) => why.clone(),
                (None, Some(newer)) => {
                    format!("only newest runs are compared: {}", fleet.hosts[*newer].file)
                }
                (None, None) => "the run has no summary to compare".to_string(),
            });
        };
        let standing = &standings[*place];
        if standing.peers == 0 {
            let alike = groups.get(standing.group).map_or(1, |group| group.hosts.len());
            let hosts = if alike == 1 { "1 host has".to_string() } else { format!("{alike} hosts have") };
            return PeerResult::Alone(format!("{hosts} its make; peers need {MIN_HOSTS} hosts"));
        }
        if !standing.is_behind() {
            return PeerResult::Level(standing.peers);
        }
        let finding = suspected[*place].finding.as_ref();
        let (headline, cause) = finding.map_or(("", ""), |own| (own.headline.as_str(), own.cause.as_str()));
        PeerResult::Slower(headline.to_string(), cause.to_string())
    }
}

/// How an earlier run of a host that is behind now compares with the host's peers.
fn before(standing: &HostStanding, subject: &Subject) -> Option<PeerResult> {
    let own = standing.history.iter().find(|own| own.started == subject.started)?;
    Some(if own.is_slow() {
        PeerResult::Slower(format!("it was {} of its peers", percent(own.ratio)), String::new())
    } else {
        PeerResult::Level(standing.peers)
    })
}
