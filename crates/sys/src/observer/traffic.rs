//! Memory traffic: of each last-level cache by resctrl monitoring (Intel RDT, AMD QoS), and of each
//! socket by its memory controllers.

use std::path::Path;
use std::time::Instant;

use super::controllers::Controllers;
use super::sensors::{SysfsFile, numbered};

/// Counters of all domains with their last readings.
pub struct Traffic {
    domains: Vec<Domain>,
    controllers: Option<Controllers>,
}

struct Domain {
    name: String,
    bytes: SysfsFile,
    /// Time and bytes of the last reading.
    before: Option<(Instant, f64)>,
}

/// No socket has this bandwidth, GB/s: a higher rate shows a counter that was reset or overflowed.
const MAX_RATE: f64 = 10_000.0;

impl Traffic {
    /// Opens the counters below `root`; the error says why there are none.
    pub fn open(root: &Path) -> Result<Traffic, String> {
        const MONITORING: &str = "sys/fs/resctrl/mon_data";
        let folder = root.join(MONITORING);
        let domain = |number: u32| {
            // The kernel names domains with two digits.
            let path = ["0", ""].map(|zero| folder.join(format!("mon_L3_{zero}{number}/mbm_total_bytes")));
            let bytes = path.iter().find_map(|path| SysfsFile::open(path))?;
            Some(Domain { name: format!("by resctrl, L3 domain {number}"), bytes, before: None })
        };
        let domains: Vec<Domain> = numbered(&folder, "mon_L3_", "").into_iter().filter_map(domain).collect();
        let controllers = Controllers::open(root);
        match (domains.is_empty(), controllers) {
            (true, Err(why)) => Err(format!(
                "no mbm_total_bytes under /{MONITORING} (resctrl is not mounted, or the CPU does not count traffic); {why}"
            )),
            (_, controllers) => Ok(Traffic { domains, controllers: controllers.ok() }),
        }
    }

    /// GB/s of each L3 domain and of each socket's controllers since the last reading; nothing at
    /// the first one.
    pub fn read(&mut self) -> Vec<(String, f64)> {
        let rate = |domain: &mut Domain| {
            let (now, bytes) = (Instant::now(), domain.bytes.number()?);
            let (then, before) = domain.before.replace((now, bytes))?;
            let ns = (now - then).as_secs_f64() * 1e9;
            let rate = (bytes - before) / ns;
            (0.0..MAX_RATE).contains(&rate).then(|| (domain.name.clone(), rate))
        };
        let domains = self.domains.iter_mut().filter_map(rate);
        let controllers = self.controllers.iter_mut().flat_map(Controllers::read);
        let possible = |(_, rate): &(String, f64)| (0.0..MAX_RATE).contains(rate);
        domains.chain(controllers.filter(possible)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bytes_of_each_domain_become_a_rate() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |domain: &str, text: &str| {
            let folder = root.path().join("sys/fs/resctrl/mon_data").join(domain);
            std::fs::create_dir_all(&folder).expect("folders");
            std::fs::write(folder.join("mbm_total_bytes"), text).expect("written");
        };
        assert!(Traffic::open(root.path()).is_err_and(|why| why.contains("not mounted")));
        write("mon_L3_00", "1000\n");
        write("mon_L3_11", "Unavailable\n");
        let mut traffic = Traffic::open(root.path()).expect("two domains");
        assert!(traffic.read().is_empty());
        std::thread::sleep(Duration::from_millis(5));
        write("mon_L3_00", "50001000\n");
        let read = traffic.read();
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].0, "by resctrl, L3 domain 0");
        // 50 MB in 5 ms or more.
        assert!(read[0].1 > 0.0 && read[0].1 <= 10.0, "{read:?}");
        write("mon_L3_00", "5\n");
        assert!(traffic.read().is_empty(), "a counter that went back gives no rate");
    }
}
