//! Runs inside of sandboxes, and runs that only look so.

use super::Case;
use super::edited::changed;
use super::environment::STEADY;
use crate::runs::findings;
use crate::synthetic::Tree;

const RELEASE: &str = "/proc/sys/kernel/osrelease";

fn released(what: &str, release: &str) -> Case {
    changed(what, STEADY, |tree| {
        tree.file(RELEASE, release);
    })
}

/// This line in the mount table, beside that of the control groups.
fn mounted(tree: &Tree, line: &str) {
    let groups = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
    tree.file("/proc/self/mountinfo", &format!("{groups}\n{line}"));
    tree.file(RELEASE, "6.1.0-13-amd64");
}

/// In a Docker container, or on the host, with these lines of /proc/self/status.
fn allowed(what: &str, is_container: bool, capabilities: &str, seccomp: u32) -> Case {
    changed(what, STEADY, |tree| {
        let hosts = "9 8 254:1 /docker/containers/0a1b2c3d4e5f/hosts /etc/hosts rw - ext4 /dev/vda1 rw";
        mounted(tree, if is_container { hosts } else { "" });
        tree.file("/proc/self/status", &format!("CapEff:\t{capabilities}\nSeccomp:\t{seccomp}"));
    })
}

pub fn containers_that_refuse() -> Vec<Case> {
    let usual = allowed("Docker's usual container", true, "00000000a80425fb", 2);
    let finding = &findings(&usual.results, "restricted-container")[0];
    let headline = finding["headline"].as_str().expect("a text");
    assert_eq!(headline, "The container refuses 4 things: some calls, debugfs, SCHED_FIFO, counters");
    let facts = finding["facts"].as_array().expect("a list");
    let said = |word: &str| facts.iter().any(|fact| fact.to_string().contains(word));
    assert!(facts.len() == 4 && said("io_uring") && said("real-time priorities"), "{finding}");
    vec![
        usual,
        allowed("a filter alone", true, "000001ffffffffff", 2),
        allowed("no capability", true, "0000000000000000", 0),
    ]
}

pub fn containers_that_refuse_nothing() -> Vec<Case> {
    vec![
        allowed("a privileged container", true, "000001ffffffffff", 0),
        allowed("a user on a host", false, "0000000000000000", 0),
        allowed("a service with a filter", false, "000001ffffffffff", 2),
    ]
}

pub fn sandboxes_that_answer_for_the_kernel() -> Vec<Case> {
    let gvisor = released("gVisor", "4.19.0-gvisor");
    let finding = &findings(&gvisor.results, "sandboxed")[0];
    let headline = finding["headline"].as_str().expect("a text");
    assert!(headline.starts_with("This runs in a `gVisor` sandbox. "), "{headline}");
    assert_eq!(finding["effect"], "none");
    let hidden = finding["facts"].to_string();
    assert!(hidden.contains("affinity") && hidden.contains("performance counters"), "{hidden}");
    vec![
        gvisor,
        released("WSL 1", "4.4.0-19041-Microsoft"),
        changed("lxcfs", STEADY, |tree| {
            mounted(tree, "9 8 0:51 /proc/stat /proc/stat rw - fuse.lxcfs lxcfs rw")
        }),
    ]
}

pub fn containers_and_hosts_of_them() -> Vec<Case> {
    vec![
        released("a plain host", "6.1.0-13-amd64"),
        released("WSL 2, which has a Linux kernel", "5.15.167.4-microsoft-standard-WSL2"),
        changed("a container", STEADY, |tree| {
            mounted(tree, "9 8 254:1 /docker/containers/0a1b2c3d4e5f/hosts /etc/hosts rw - ext4 /dev/vda1 rw")
        }),
        changed("a host of LXC containers", STEADY, |tree| {
            mounted(tree, "9 8 0:51 / /var/lib/lxcfs rw - fuse.lxcfs lxcfs rw")
        }),
    ]
}
