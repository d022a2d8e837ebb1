//! What a run may have left: files, processes, kernel objects. Held against what was there before.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::ground::Ground;
use super::scenes::Server;
use crate::host::processes_marked;

/// What is still there after this time counts as left behind.
const SETTLED: Duration = Duration::from_secs(60);

/// Objects of the kernel that were there before.
pub struct Before {
    objects: BTreeSet<String>,
}

impl Before {
    pub fn now() -> Before {
        Before { objects: objects() }
    }

    /// What is there now and was not before; something that goes by itself soon is not left.
    pub fn left(&self, ground: &Ground, server: Option<u32>) -> Vec<String> {
        self.left_after(ground, server, SETTLED)
    }

    /// The server is ours and stays.
    fn left_after(&self, ground: &Ground, server: Option<u32>, settled: Duration) -> Vec<String> {
        let look = || {
            let mut all: Vec<String> = objects().difference(&self.objects).cloned().collect();
            let marks = ["SOAK", Server::MARK].map(|name| format!("{name}={}", ground.nonce));
            let processes = marks.iter().flat_map(|mark| processes_marked(mark));
            all.extend(processes.filter(|(pid, _)| Some(*pid) != server).map(|(pid, command)| {
                format!("process {pid} lives: {}", command.chars().take(200).collect::<String>())
            }));
            all.extend(ground.strange_files());
            all.extend(loops(ground));
            all
        };
        let begin = Instant::now();
        let mut left = look();
        while !left.is_empty() && begin.elapsed() < settled {
            std::thread::sleep(Duration::from_millis(50));
            let now = look();
            left.retain(|one| now.contains(one));
        }
        left
    }
}

fn objects() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for kind in ["sem", "shm", "msg"] {
        let text = fs::read_to_string(format!("/proc/sysvipc/{kind}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().take(2).collect();
            all.insert(format!("System V {kind} object, key {}", words.join(" id ")));
        }
    }
    let ours = |name: &str| name.starts_with("sem.") || name.contains("assay");
    all.extend(names(Path::new("/dev/shm")).filter(|name| ours(name)).map(|name| format!("/dev/shm/{name}")));
    for kind in ["/sys/class/net", "/run/netns"] {
        all.extend(names(Path::new(kind)).map(|name| format!("{kind}/{name}")));
    }
    for hierarchy in hierarchies() {
        groups(&hierarchy, 8, &mut all);
    }
    all
}

/// Loop devices on files of the ground.
fn loops(ground: &Ground) -> Vec<String> {
    let devices = names(Path::new("/sys/block")).filter(|name| name.starts_with("loop"));
    let on = |device: String| {
        let file = Path::new("/sys/block").join(&device).join("loop/backing_file");
        let file = fs::read_to_string(file)
            .ok()
            .filter(|file| Path::new(file.trim()).starts_with(ground.path("")))?;
        Some(format!("loop device {device} on {}", file.trim()))
    };
    devices.filter_map(on).collect()
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

fn hierarchies() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let words = mounts.lines().map(|line| line.split(' ').collect::<Vec<&str>>());
    let groups = words.filter(|words| words.get(2).is_some_and(|kind| kind.starts_with("cgroup")));
    groups.map(|words| PathBuf::from(words[1])).collect()
}

/// Control groups with a name of ours, but for those with processes in them: another lane's.
fn groups(folder: &Path, deep: usize, all: &mut BTreeSet<String>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for entry in folders {
        let name = entry.file_name().to_string_lossy().into_owned();
        let members = fs::read_to_string(entry.path().join("cgroup.procs")).unwrap_or_default();
        if name.starts_with("assay") && !name.starts_with("assay-test-") && members.is_empty() {
            all.insert(format!("control group {}", entry.path().display()));
        }
        if deep > 0 {
            groups(&entry.path(), deep - 1, all);
        }
    }
}

mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::host::{skipped, works};

    /// Checks that `left` names what `plant` made, by the words that it gives, and did not name it
    /// before. Other tests' objects come and go meanwhile.
    fn seen(plant: impl FnOnce(&Ground) -> String, remove: impl FnOnce(&Ground)) {
        let ground = Ground::new();
        let before = Before::now();
        let earlier = before.left_after(&ground, None, Duration::ZERO);
        let said = plant(&ground);
        let left = before.left_after(&ground, None, Duration::from_millis(200));
        remove(&ground);
        let tells = |left: &[String]| left.iter().any(|one| one.contains(&said));
        assert!(tells(&left) && !tells(&earlier), "{said}: {left:?}, before {earlier:?}");
    }

    #[test]
    fn files_of_ours_are_seen() {
        for (name, text) in [
            ("tmp/assay-files-1-ffffffff", "x"),
            ("dir/assay-tree-1-ffffffff", "x"),
            ("out/.tmpFfGgHh", "x"),
            ("state/knobs.json", "{}"),
            ("out/vm-2026.assay.jsonl", ""),
        ] {
            let plant = |ground: &Ground| {
                fs::write(ground.path(name), text).expect("written");
                name.to_string()
            };
            seen(plant, |_| {});
        }
    }

    #[test]
    fn processes_and_kernel_objects_of_ours_are_seen() {
        let mut child = None;
        let plant = |ground: &Ground| {
            let mut sleep = Command::new("sleep");
            let started = sleep.arg("60").env("SOAK", &ground.nonce).spawn().expect("sleep starts");
            let said = format!("process {} lives: sleep 60", started.id());
            child = Some(started);
            said
        };
        seen(plant, |_| {});
        let mut child = child.expect("it was planted");
        child.kill().and_then(|()| child.wait()).expect("it ends");
        if !works("ipcmk", &["--version"]) {
            return skipped("processes_and_kernel_objects_of_ours_are_seen", "there is no ipcmk");
        }
        let mut id = String::new();
        let plant = |_: &Ground| {
            let made = Command::new("ipcmk").args(["-S", "1"]).output().expect("ipcmk runs");
            let said = String::from_utf8_lossy(&made.stdout).into_owned();
            id = said.trim().rsplit(' ').next().expect("an id").to_string();
            format!(" id {id}")
        };
        seen(plant, |_| {});
        let quiet = Command::new("ipcrm").args(["-s", &id]).stdout(Stdio::null()).status();
        assert!(quiet.expect("ipcrm runs").success());
    }

    #[test]
    fn an_empty_control_group_of_ours_is_seen() {
        let group = crate::host::Group::new("cpu", &[]);
        let Ok(group) = group else {
            return skipped("an_empty_control_group_of_ours_is_seen", "no group can be made");
        };
        let inner = group.folder().join("assay-soak-planted");
        let plant = |_: &Ground| {
            fs::create_dir(&inner).expect("a group");
            inner.display().to_string()
        };
        seen(plant, |_| fs::remove_dir(&inner).expect("removed"));
    }
}
