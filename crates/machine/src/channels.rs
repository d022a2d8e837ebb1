//! Which memory modules share a channel, where a platform's rule, names or the kernel's error
//! counters clearly report.
//!
//! Slots are not channels: two modules on one channel move at most one. Boards that number
//! their slots by a plan of their own (A1, PROC 1 DIMM 3) need a rule (`dimm/boards.rs`); without
//! one, names are read where they spell the channel out.

use std::collections::{BTreeMap, BTreeSet};

use super::Dimm;
use model::Snapshot;

/// Populated channels.
#[derive(Clone, Debug, PartialEq)]
pub struct Channels {
    pub count: usize,
    /// What they move at most together, bytes/ns = GB/s.
    pub gb_per_s: f64,
    /// Whose word it is.
    pub source: &'static str,
}

/// More modules do not fit on a channel: then it was no channel's name.
const MAX_MODULES: usize = 3;

/// What a module moves at most, GB/s; `None` where its speed is unknown.
pub fn module_gb_per_s(dimm: &Dimm) -> Option<f64> {
    let transfers = f64::from(dimm.most_mts.or(dimm.configured_mts).or(dimm.speed_mts)?);
    Some(transfers * f64::from(dimm.data_width_bits.unwrap_or(64)) / 8.0 / 1e3)
}

/// The populated channels; `None` where neither a rule, the names of all modules nor EDAC report,
/// or a speed is unknown.
pub fn channels(dimms: &[Dimm], snapshot: &Snapshot) -> Option<Channels> {
    let populated: Vec<&Dimm> = dimms.iter().filter(|dimm| dimm.is_memory()).collect();
    by_rule(&populated).or_else(|| by_names(&populated)).or_else(|| by_edac(&populated, snapshot))
}

/// Modules of one channel by both their names, and what the fastest moves.
#[derive(Default)]
struct Shared<'a> {
    modules: BTreeSet<(&'a str, &'a str)>,
    gb_per_s: f64,
}

fn by_rule(populated: &[&Dimm]) -> Option<Channels> {
    let mut channels: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for dimm in populated {
        let fastest = channels.entry((dimm.socket?, dimm.channel?)).or_default();
        *fastest = fastest.max(module_gb_per_s(dimm)?);
    }
    let source = "channels from SMBIOS type 17 and the platform's rule for slot names";
    (!channels.is_empty()).then(|| Channels {
        count: channels.len(),
        gb_per_s: channels.values().sum(),
        source,
    })
}

fn by_names(populated: &[&Dimm]) -> Option<Channels> {
    let mut channels: BTreeMap<String, Shared> = BTreeMap::new();
    for dimm in populated {
        let name = channel_name(&dimm.bank).or_else(|| channel_name(&dimm.locator))?;
        let channel = channels.entry(name).or_default();
        // Two modules of one name: the name lacks the socket.
        if !channel.modules.insert((&dimm.bank, &dimm.locator)) || channel.modules.len() > MAX_MODULES {
            return None;
        }
        channel.gb_per_s = channel.gb_per_s.max(module_gb_per_s(dimm)?);
    }
    let gb_per_s = channels.values().map(|channel| channel.gb_per_s).sum();
    let source = "channels from the modules' names in SMBIOS type 17";
    (!channels.is_empty()).then_some(Channels { count: channels.len(), gb_per_s, source })
}

/// A name up to the channel that it spells out: `P0_Node0_Channel1_Dimm0` gives
/// `p0_node0_channel1`, `P0 CHANNEL A` itself, `CPU0_C1D0` gives `cpu0_c1`.
fn channel_name(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    if let Some((before, after)) = name.split_once("channel") {
        let after = after.trim_start_matches([' ', '_', '-']);
        let digits = after.chars().take_while(char::is_ascii_digit).count();
        // One letter that stands alone (no plural), or a number.
        let letter = after.starts_with(|c: char| ('a'..='p').contains(&c))
            && !after[1..].starts_with(|c: char| c.is_ascii_alphanumeric());
        let length = if digits > 0 { digits } else { usize::from(letter) };
        return (length > 0).then(|| format!("{before}channel{}", &after[..length]));
    }
    // cCdD at the end.
    let (before, slot) = name.rsplit_once('d')?;
    let channel = before.rfind('c')?;
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parted = channel > 0 && !before.as_bytes()[channel - 1].is_ascii_alphanumeric();
    (parted && number(slot) && number(&before[channel + 1..])).then(|| before.to_string())
}

/// `/sys/devices/system/edac/mc/mcN/dimmM/dimm_location` says `channel 1 slot 0` where a driver
/// knows the controllers.
fn by_edac(populated: &[&Dimm], snapshot: &Snapshot) -> Option<Channels> {
    const CONTROLLERS: &str = "/sys/devices/system/edac/mc";
    let (mut channels, mut modules) = (BTreeSet::new(), 0);
    for controller in snapshot.numbered(CONTROLLERS, "mc") {
        let folder = format!("{CONTROLLERS}/mc{controller}");
        for name in snapshot.children(&folder) {
            let size: Option<u64> = snapshot.number(&format!("{folder}/{name}/size"));
            let Some(location) = snapshot.text(&format!("{folder}/{name}/dimm_location")) else { continue };
            if size == Some(0) {
                continue;
            }
            let mut words = location.split_whitespace().skip_while(|word| *word != "channel");
            let channel: u32 = words.nth(1)?.parse().ok()?;
            channels.insert((controller, channel));
            modules += 1;
        }
    }
    // A driver that sees fewer modules than there are sees fewer channels.
    if populated.is_empty() || modules < populated.len() || channels.is_empty() {
        return None;
    }
    let speeds: Option<Vec<f64>> = populated.iter().map(|dimm| module_gb_per_s(dimm)).collect();
    let fastest = speeds?.into_iter().fold(0.0, f64::max);
    Some(Channels {
        count: channels.len(),
        gb_per_s: fastest * channels.len() as f64,
        source: "channels from EDAC, /sys/devices/system/edac/mc",
    })
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    fn dimm(bank: &str, locator: &str) -> Dimm {
        Dimm {
            locator: locator.into(),
            bank: bank.into(),
            size_bytes: Some(16 << 30),
            configured_mts: Some(3200),
            ..Dimm::default()
        }
    }

    #[test]
    fn names_that_spell_the_channel_out() {
        let name = |text: &str| channel_name(text);
        assert_eq!(name("P0_Node1_Channel2_Dimm0").as_deref(), Some("p0_node1_channel2"));
        assert_eq!(name("P0 CHANNEL A").as_deref(), Some("p0 channela"));
        assert_eq!(name("Controller0-ChannelA-DIMM0").as_deref(), Some("controller0-channela"));
        assert_eq!(name("CPU0_C10D1").as_deref(), Some("cpu0_c10"));
        for other in [
            "A1",
            "PROC 1 DIMM 10",
            "DIMM 1",
            "NODE 0",
            "P1-DIMMA1",
            "Not Specified",
            "channels",
            "",
            "c0d",
            "d",
        ] {
            assert_eq!(name(other), None, "{other}");
        }
        assert_eq!(name("Kanal channel é"), None);
    }

    #[test]
    fn two_modules_on_a_channel_move_no_more_than_one() {
        let none = Snapshot::default();
        let pair =
            [dimm("P0 CHANNEL A", "DIMM 0"), dimm("P0 CHANNEL A", "DIMM 1"), dimm("P0 CHANNEL B", "DIMM 0")];
        let found = channels(&pair, &none).expect("named");
        assert_eq!((found.count, found.gb_per_s), (2, 51.2));
        // A board of two sockets whose names lack the socket, and one of which a name is missing.
        assert_eq!(channels(&[dimm("ChannelA", "DIMM0"), dimm("ChannelA", "DIMM0")], &none), None);
        assert_eq!(channels(&[dimm("P0 CHANNEL A", "DIMM 0"), dimm("", "B1")], &none), None);
        assert_eq!(channels(&vec![dimm("", "A1"); 2], &none), None);
    }

    #[test]
    fn a_rule_comes_before_names() {
        let placed = |channel, slot| Dimm {
            socket: Some(0),
            channel: Some(channel),
            slot_in_channel: Some(slot),
            ..dimm("", "A1")
        };
        let found =
            channels(&[placed(0, 0), placed(0, 1), placed(1, 0)], &Snapshot::default()).expect("placed");
        assert_eq!((found.count, found.gb_per_s), (2, 51.2));
        assert!(found.source.contains("rule"));
    }

    #[test]
    fn edac_tells_what_names_do_not() {
        let place = "/sys/devices/system/edac/mc/mc0";
        let paths: Vec<String> = (0..3)
            .flat_map(|n| [format!("{place}/dimm{n}/dimm_location"), format!("{place}/dimm{n}/size")])
            .collect();
        let texts = ["channel 0 slot 0", "16384", "channel 0 slot 1", "16384", "channel 1 slot 0", "0"];
        let files: Vec<(&str, &str)> = paths.iter().map(String::as_str).zip(texts).collect();
        let snapshot = tree(&files);
        let found = channels(&vec![dimm("", "A1"); 2], &snapshot).expect("told");
        assert_eq!((found.count, found.gb_per_s), (1, 25.6));
        assert_eq!(channels(&vec![dimm("", "A1"); 3], &snapshot), None, "one module is not seen");
    }

    /// Real boards, where the fixtures are.
    #[test]
    fn what_names_tell_of_real_boards_is_true() {
        let folder = testkit::root().join("../shared/fixtures/dmi");
        let Ok(files) = std::fs::read_dir(&folder) else { return };
        let mut told = 0;
        for file in files.flatten().filter(|file| file.path().to_string_lossy().ends_with(".truth.json")) {
            let text = std::fs::read_to_string(file.path()).expect("readable");
            let truth: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let modules = truth["populated"].as_array().expect("a list");
            let dimms: Vec<Dimm> = modules
                .iter()
                .map(|module| {
                    let text = |name: &str| module[name].as_str().unwrap_or("").trim();
                    dimm(text("bank_locator"), text("locator"))
                })
                .collect();
            let real: BTreeSet<String> = modules
                .iter()
                .map(|m| format!("{} {} {}", m["socket"], m["controller"], m["channel"]))
                .collect();
            if let Some(found) = channels(&dimms, &Snapshot::default()) {
                assert_eq!(found.count, real.len(), "{}", file.path().display());
                told += 1;
            }
        }
        assert!(told >= 5, "names of {told} boards tell their channels");
    }
}
