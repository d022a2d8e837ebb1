//! The sockets of a board against each other, and the controllers and channels of each.

use std::collections::BTreeMap;

use super::cpus::Facts;
use super::population::{Balance, Confidence, DimmFinding, SocketMemory};
use model::Severity;

/// The sockets while they are judged.
pub(super) struct Placed<'a> {
    pub sockets: &'a [SocketMemory],
    pub facts: Option<&'a Facts>,
    pub unbalanced: bool,
    pub confidence: Confidence,
}

pub(super) fn finding(
    kind: &'static str,
    severity: Severity,
    confidence: Confidence,
    text: String,
) -> DimmFinding {
    DimmFinding { kind, severity, confidence, text, remedy: None }
}

pub(super) fn differ<T: PartialEq>(values: impl Iterator<Item = T>) -> bool {
    let mut values = values;
    let first = values.next();
    values.any(|value| Some(&value) != first.as_ref())
}

pub(super) fn gib(bytes: u64) -> String {
    format!("{} GiB", bytes as f64 / f64::from(1 << 30))
}

pub(super) fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

impl<'a> Placed<'a> {
    pub fn findings(&mut self) -> Vec<DimmFinding> {
        let mut found = self.between_sockets();
        for part in [Self::controllers, Self::capacities, Self::counts, Self::empty] {
            found.extend(part(self));
        }
        found
    }

    fn with_memory(&self) -> impl Iterator<Item = &'a SocketMemory> + use<'a> {
        self.sockets.iter().filter(|socket| socket.dimms > 0)
    }

    fn of_each(&self, words: impl Fn(&SocketMemory) -> String) -> String {
        listed(self.sockets.iter().map(|socket| format!("socket {}: {}", socket.socket, words(socket))))
    }

    fn between_sockets(&mut self) -> Vec<DimmFinding> {
        let mut found = Vec::new();
        for socket in self.sockets.iter().filter(|socket| socket.dimms == 0) {
            self.unbalanced = true;
            let text = format!(
                "socket {} has a processor but no memory: work there uses another socket's memory",
                socket.socket
            );
            found.push(finding("socket_without_memory", Severity::Problem, Confidence::High, text));
        }
        let sockets = self.sockets;
        if differ(sockets.iter().map(|socket| socket.bytes)) {
            self.unbalanced = true;
            let text =
                format!("sockets have different amounts of memory ({})", self.of_each(|one| gib(one.bytes)));
            found.push(finding("socket_capacity_differs", Severity::Warning, Confidence::High, text));
        }
        if differ(sockets.iter().map(|socket| socket.dimms)) {
            let text = format!(
                "sockets have different numbers of modules ({})",
                self.of_each(|one| one.dimms.to_string())
            );
            found.push(finding("socket_dimm_count_differs", Severity::Note, Confidence::High, text));
        }
        if differ(sockets.iter().map(|socket| &socket.dimms_per_channel)) {
            let text =
                format!("sockets are filled differently (modules per channel, {})", self.of_each(filling));
            found.push(finding("socket_layout_differs", Severity::Note, Confidence::High, text));
        }
        // As much memory on fewer channels is less bandwidth.
        self.unbalanced |= differ(self.with_memory().map(|socket| socket.channels_populated));
        found
    }

    fn controllers(&mut self) -> Option<DimmFinding> {
        let facts = self.facts?;
        let controllers = facts.controllers?;
        let uneven: Vec<&SocketMemory> = self
            .with_memory()
            .filter(|socket| {
                let counts = socket.dimms_per_controller.iter().flat_map(BTreeMap::values);
                // One controller alone serves as many modules as it has channels; more would be on
                // the others.
                let one = counts.clone().count() == 1 && controllers > 1;
                let uneven = differ(counts) || (one && socket.dimms as u32 > facts.channels_each());
                uneven && !is_one_set(socket, facts)
            })
            .collect();
        if uneven.is_empty() {
            return None;
        }
        let words = |socket: &SocketMemory| {
            let count = |controller| {
                let counts = socket.dimms_per_controller.as_ref();
                counts.and_then(|counts| counts.get(&controller)).copied().unwrap_or(0)
            };
            (0..controllers).map(|controller| count(controller).to_string()).collect::<Vec<_>>().join("+")
        };
        let sockets =
            listed(uneven.iter().map(|socket| format!("socket {}: {}", socket.socket, words(socket))));
        // Two against three lean the same way as three against one, but too little to be called a
        // fault.
        let slight = uneven.iter().all(|socket| {
            let counts = socket.dimms_per_controller.iter().flat_map(BTreeMap::values).copied();
            let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
            least >= 2 && most - least == 1 && socket.dimms == socket.channels_populated
        });
        self.unbalanced = true;
        let is_known = facts.controllers_source().is_some();
        let (severity, confidence) = if slight || !is_known {
            (Severity::Note, Confidence::Low)
        } else {
            (Severity::Problem, Confidence::High)
        };
        if (slight || !is_known) && self.sockets.len() == uneven.len() {
            self.confidence = Confidence::Low;
        }
        let costs = if is_known {
            "addresses cannot interleave over all channels, so bandwidth depends on which memory a program gets"
        } else {
            "Assay knows no document about its cost on this generation of processors"
        };
        let text = format!(
            "the memory controllers of a socket have different numbers of modules ({sockets}): {costs}"
        );
        Some(finding("controller_imbalance", severity, confidence, text))
    }

    fn capacities(&mut self) -> Option<DimmFinding> {
        let uneven: Vec<&SocketMemory> =
            self.with_memory().filter(|socket| differ(socket.bytes_per_channel.values())).collect();
        let first = uneven.first()?;
        let one_set = |socket: &SocketMemory| {
            self.facts.is_some_and(|facts| facts.even_modules.contains(&(socket.dimms as u32)))
        };
        let covered = uneven.iter().all(|socket| one_set(socket));
        let text = format!(
            "the channels of a socket have different amounts of memory (socket {}: {})",
            first.socket,
            listed(
                first
                    .bytes_per_channel
                    .iter()
                    .map(|(channel, bytes)| format!("channel {channel} {}", gib(*bytes)))
            )
        );
        self.unbalanced |= !covered;
        Some(finding("channel_capacity_differs", Severity::Warning, Confidence::High, text))
    }

    fn counts(&mut self) -> Option<DimmFinding> {
        let uneven = self.with_memory().find(|socket| differ(socket.dimms_per_channel.values()))?;
        let text = format!(
            "the channels of a socket have different numbers of modules (socket {}: {})",
            uneven.socket,
            filling(uneven)
        );
        Some(finding("channel_dimm_count_differs", Severity::Note, Confidence::High, text))
    }

    fn empty(&mut self) -> Option<DimmFinding> {
        let empty = |socket: &&SocketMemory| {
            socket.channels_total.is_some_and(|total| socket.channels_populated < total as usize)
        };
        let sockets: Vec<&SocketMemory> = self.with_memory().filter(empty).collect();
        let first = sockets.first()?;
        let total = first.channels_total.unwrap_or(0);
        let mut text = format!(
            "{} of {total} channels are used ({}): at most {:.0} % of the processor's bandwidth",
            first.channels_populated,
            listed(sockets.iter().map(|socket| format!("socket {}", socket.socket))),
            first.channels_populated as f64 / f64::from(total.max(1)) * 100.0
        );
        let mut severity = Severity::Note;
        let several = |socket: &&SocketMemory| {
            self.facts.is_some_and(|facts| !facts.even.contains(&(socket.channels_populated as u32)))
        };
        if sockets.iter().any(several) {
            let source = self.facts.and_then(|facts| facts.regions_source());
            let (words, confidence) = match source {
                Some(_) => {
                    severity = Severity::Warning;
                    let words = "this number cannot form one interleave set, so memory has regions of different \
                                 speed";
                    (words, Confidence::Medium)
                }
                None => {
                    let words = "Assay knows no document about interleave sets of this size on this generation \
                                 of processors";
                    (words, Confidence::Low)
                }
            };
            text.push_str(&format!("; {words}"));
            if !self.unbalanced {
                self.confidence = confidence;
            }
            self.unbalanced = true;
        }
        let stacked = |socket: &&SocketMemory| self.facts.is_some_and(|facts| could_spread(socket, facts));
        if sockets.iter().any(stacked) {
            text.push_str(
                "; modules share channels while others are empty; they would fit evenly on more channels",
            );
            severity = Severity::Warning;
            self.unbalanced = true;
        }
        Some(finding("channels_empty", severity, Confidence::High, text))
    }

    pub fn verdict(&mut self, modules: &[DimmFinding], found: &[DimmFinding]) -> Balance {
        let any = |kinds: &[&str]| found.iter().chain(modules).any(|finding| kinds.contains(&finding.kind));
        if self.unbalanced {
            return Balance::Unbalanced;
        }
        if any(&["channels_empty", "channel_capacity_differs"]) {
            return Balance::NearBalanced;
        }
        let differences = [
            "mixed_sizes",
            "socket_dimm_count_differs",
            "socket_layout_differs",
            "channel_dimm_count_differs",
        ];
        if any(&differences) {
            self.confidence = self.confidence.min(Confidence::Medium);
            return Balance::BalancedWithDifferences;
        }
        Balance::Balanced
    }
}

/// Whether one interleave set covers this many channels, though they cannot be the same of each
/// controller: six of eight on four controllers.
fn is_one_set(socket: &SocketMemory, facts: &Facts) -> bool {
    let used = socket.channels_populated as u32;
    let controllers = facts.controllers.unwrap_or(1);
    let counts = socket.dimms_per_controller.iter().flat_map(BTreeMap::values);
    let (least, most) = (counts.clone().min().copied().unwrap_or(0), counts.max().copied().unwrap_or(0));
    let depth = socket.dimms_per_channel.values().max().copied().unwrap_or(0);
    controllers > 2
        && facts.even.contains(&used)
        && !used.is_multiple_of(controllers)
        && !differ(socket.dimms_per_channel.values())
        && most - least <= depth
}

/// Modules a channel, all channels in order.
fn filling(socket: &SocketMemory) -> String {
    let last = socket.dimms_per_channel.keys().max().map_or(0, |last| last + 1);
    let count = |channel| socket.dimms_per_channel.get(&channel).copied().unwrap_or(0).to_string();
    (0..socket.channels_total.unwrap_or(last)).map(count).collect::<Vec<_>>().join(" ")
}

/// Whether as many modules would fill more channels evenly.
fn could_spread(socket: &SocketMemory, facts: &Facts) -> bool {
    let more = |channels: &&u32| {
        let controllers = facts.controllers.unwrap_or(1);
        **channels as usize > socket.channels_populated
            && socket.dimms.is_multiple_of(**channels as usize)
            && (channels.is_multiple_of(controllers) || **channels < controllers)
    };
    socket.dimms > socket.channels_populated && facts.even.iter().any(|channels| more(&channels))
}
