//! Quotas of cgroup version 2 on each level of a guest's groups, in sight and where a container
//! hides them: as the root of the tree that is mounted, or behind an empty folder.

use super::{in_guest, read_json};
use crate::runs::findings;

/// A fifth of a CPU.
const SCRIPT: &str = r#"
    top=/sys/fs/cgroup
    echo +cpu >$top/cgroup.subtree_control
    mkdir -p $top/a/b/c
    echo +cpu >$top/a/cgroup.subtree_control
    echo +cpu >$top/a/b/cgroup.subtree_control
    measured() {
        unshare -m sh -c "echo 0 >$top/a/b/c/cgroup.procs; $2
            exec assay run --quick --force --only cpu.arithmetic --budget 30s --checks --out out" >$1.txt 2>&1
        case $? in 0 | 3) ;; *) cat $1.txt >&2; exit 1 ;; esac
        cp out/*.report.json $1.json
        rm -r out
    }
    set +e
    for level in none a a/b a/b/c; do
        name=$(echo $level | tr / -)
        [ $level = none ] || echo 20000 100000 >$top/$level/cpu.max
        measured $name-shown ""
        measured $name-below "mount --bind $top/a/b/c $top"
        measured $name-masked "mount -t tmpfs none $top"
        [ $level = none ] || echo max >$top/$level/cpu.max
    done
    set -e
"#;

#[test]
#[ignore = "six minutes of one guest: make lab"]
fn a_quota_is_seen_on_every_level_shown_or_hidden() {
    let test = "a_quota_is_seen_on_every_level_shown_or_hidden";
    let Some(folder) = in_guest(test, "uma", SCRIPT) else { return };
    let mut wrong = Vec::new();
    for level in ["none", "a", "a-b", "a-b-c"] {
        for how in ["shown", "below", "masked"] {
            let name = format!("{level}-{how}");
            let results = read_json(&folder, &format!("{name}.json"));
            let quotas: Vec<String> =
                findings(&results, "cpu-quota").iter().map(|one| one["headline"].to_string()).collect();
            let text = std::fs::read_to_string(folder.path().join(format!("{name}.txt"))).expect("a text");
            let clear = text.lines().any(|line| line.contains("no CPU quota"));
            println!("{name}: all clear {clear}: {quotas:?}");
            let is_right = match level {
                "none" => quotas.is_empty(),
                _ => !quotas.is_empty() && !clear,
            };
            if !is_right {
                wrong.push(format!("{name}: {text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
