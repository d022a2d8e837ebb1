//! What a directory's disk hangs on.

use std::fs;

/// Lines to add to the entry `probe:directory` that has this text: where its block device stands in /sys, and the link of
/// the PCI device that it hangs on; none for a filesystem that lies on no device or on several.
pub fn of_directory(probe: &str) -> String {
    let device = probe.lines().find_map(|line| line.strip_prefix("device ")).unwrap_or_default();
    let found = fs::canonicalize(format!("/sys/dev/block/{device}"));
    let Some(place) = found.ok().filter(|place| place.starts_with("/sys/devices")) else {
        return String::new();
    };
    let mut text = format!("sysfs {}\n", place.display());
    for name in ["current_link_speed", "current_link_width"] {
        let told = place.ancestors().find_map(|folder| fs::read_to_string(folder.join(name)).ok());
        text.extend(told.map(|value| format!("{name} {}\n", value.trim())));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_no_device_has_no_lines() {
        for probe in ["", "path /x\n", "device 0:4095\n", "device \n", "device ../../../etc\n"] {
            assert_eq!(of_directory(probe), "", "{probe:?}");
        }
    }
}
