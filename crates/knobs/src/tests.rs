//! Knobs of made trees: what is turned is turned back, wherever a session ends.

use std::collections::BTreeMap;

use super::setter::lock_state;
use super::*;

const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const CONTROL: &str = "/sys/devices/system/cpu/smt/control";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// A tree with SMT that can be switched, and its knobs.
struct Tree {
    folder: tempfile::TempDir,
    knobs: Knobs,
}

impl Tree {
    fn new() -> Tree {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = Store(folder.path().join("var/lib/assay"));
        let knobs = Knobs { root: folder.path().to_path_buf(), store, watchdog: None };
        let tree = Tree { folder, knobs };
        tree.file(BOOT, "boot-1");
        tree.file(CONTROL, "on");
        tree
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, format!("{text}\n")).expect("a file");
    }

    fn smt(&self) -> String {
        self.knobs.text(CONTROL).expect("it is there")
    }

    /// A setter that has switched SMT off.
    fn off(&self) -> KnobSetter {
        let setter = self.knobs.setter();
        assert_eq!(setter.set(&off()).expect("it can be set"), ["smt from on to off"]);
        assert_eq!(self.smt(), "off");
        setter
    }

    /// What the next session says.
    fn next(&self) -> Vec<String> {
        let said = self.knobs.restore_what_was_left().expect("it can be put back");
        assert!(!self.knobs.store.file().exists(), "nothing is left to do: {said:?}");
        said
    }
}

#[test]
fn a_link_in_the_place_of_the_next_journal_is_not_followed() {
    let tree = Tree::new();
    let kept = tree.folder.path().join("kept");
    fs::write(&kept, "mine").expect("a file");
    fs::create_dir_all(&tree.knobs.store.0).expect("a folder");
    std::os::unix::fs::symlink(&kept, tree.knobs.store.0.join("knobs.json.new")).expect("a link");
    killed(tree.off());
    assert_eq!(fs::read_to_string(&kept).expect("it is there"), "mine");
    tree.next();
}

fn off() -> BTreeMap<String, String> {
    BTreeMap::from([("smt".to_string(), "off".to_string())])
}

/// What SIGKILL leaves of a session: its journal, and no lock.
fn killed(setter: KnobSetter) {
    lock_state(&setter.state).changes = None;
    // After a real kill neither would be restored.
    drop(setter);
}

#[test]
fn a_session_puts_back_what_it_turned() {
    let tree = Tree::new();
    let setter = tree.off();
    assert!(tree.knobs.store.file().exists(), "it is noted while it lasts");
    assert!(setter.set(&off()).expect("it is off").is_empty(), "nothing to turn");
    assert_eq!(setter.set(&BTreeMap::new()).expect("back"), ["smt is on again (was off)"]);
    assert_eq!((tree.smt().as_str(), tree.knobs.store.file().exists()), ("on", false));
    assert!(tree.next().is_empty());
    drop(tree.off());
    assert_eq!(tree.smt(), "on", "by the setter's own end");
    let setter = tree.off();
    setter.emergency_restore().try_restore();
    assert_eq!(tree.smt(), "on", "by another thread");
}

#[test]
fn killed_after_the_change() {
    let tree = Tree::new();
    killed(tree.off());
    assert_eq!(tree.smt(), "off");
    assert_eq!(tree.next(), ["smt is on again (was off)"]);
    assert_eq!(tree.smt(), "on");
}

#[test]
fn killed_between_the_journal_and_the_change() {
    let tree = Tree::new();
    let setter = tree.knobs.setter();
    {
        let mut state = lock_state(&setter.state);
        state.acquire().expect("nobody else has them");
        state.note_change("smt", CONTROL, "on", vec!["off".into()]).expect("a journal");
    }
    killed(setter);
    assert_eq!(tree.smt(), "on");
    assert!(tree.next().is_empty(), "nothing had happened");
    // The same on the way to the third value: the second one is still Assay's.
    tree.file(THP, "always [madvise] never");
    let setter = tree.knobs.setter();
    {
        let mut state = lock_state(&setter.state);
        state.acquire().expect("nobody else has them");
        state.note_change("thp", THP, "madvise", vec!["never".into()]).expect("a journal");
        state.note_change("thp", THP, "never", vec!["never".into(), "always".into()]).expect("a journal");
    }
    killed(setter);
    tree.file(THP, "always madvise [never]");
    assert_eq!(tree.next(), ["thp is madvise again (was never)"]);
    assert_eq!(tree.knobs.text(THP).expect("it is there"), "always [madvise] never");
}

#[test]
fn one_name_for_many_kernels() {
    let tree = Tree::new();
    tree.file("/proc/sys/kernel/osrelease", "5.10.1");
    tree.file("/proc/sys/kernel/sched_min_granularity_ns", "2250000");
    let place = |name: &str| tree.knobs.locate(name).map(|located| located.place().to_string());
    assert_eq!(place("min_granularity_ns").as_deref(), Ok("/proc/sys/kernel/sched_min_granularity_ns"));
    let why = place("base_slice_ns").expect_err("CFS");
    assert!(why.contains("(5.10.1) has no base_slice_ns") && why.contains("min_granularity_ns"), "{why}");
    let why = place("migration_cost_ns").expect_err("not in this tree");
    assert!(why.contains("debugfs is not mounted") && why.contains("sched_migration_cost_ns"), "{why}");
    let tree = Tree::new();
    tree.file("/sys/kernel/debug/sched/min_granularity_ns", "3000000");
    tree.file("/sys/kernel/debug/sched/features", "GENTLE_FAIR_SLEEPERS NO_NEXT_BUDDY");
    let setter = tree.knobs.setter();
    let wanted = [("min_granularity_ns", "100000"), ("feature.next_buddy", "on"), ("policy", "batch")];
    let wanted = wanted.map(|(name, value)| (name.to_string(), value.to_string()));
    let said = setter.set(&BTreeMap::from(wanted)).expect("they can be set");
    assert_eq!(said, ["feature.next_buddy from off to on", "min_granularity_ns from 3000000 to 100000"]);
    assert_eq!(tree.knobs.current("feature.NEXT_BUDDY").as_deref(), Ok("on"));
    setter.restore().expect("back");
    let features = tree.knobs.text("/sys/kernel/debug/sched/features").expect("it is there");
    assert_eq!(features, "GENTLE_FAIR_SLEEPERS NO_NEXT_BUDDY");
    // Two features are two knobs of one file.
    let both = [("feature.next_buddy", "on"), ("feature.gentle_fair_sleepers", "off")];
    setter
        .set(&BTreeMap::from(both.map(|(name, value)| (name.to_string(), value.to_string()))))
        .expect("set");
    let features = || tree.knobs.text("/sys/kernel/debug/sched/features").expect("it is there");
    assert_eq!(features(), "NO_GENTLE_FAIR_SLEEPERS NEXT_BUDDY");
    killed(setter);
    assert_eq!(tree.next().len(), 2);
    assert_eq!(features(), "GENTLE_FAIR_SLEEPERS NO_NEXT_BUDDY");
    assert!(tree.knobs.unmet("feature.WARP", "on").is_some_and(|why| why.contains("does not name it")));
}

#[test]
fn several_files_are_one_knob() {
    let tree = Tree::new();
    let file = |policy: u32| format!("/sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor");
    (0..3).for_each(|policy| tree.file(&file(policy), if policy == 1 { "performance" } else { "powersave" }));
    assert_eq!(tree.knobs.current("governor").as_deref(), Ok("powersave+performance"));
    let setter = tree.knobs.setter();
    setter.set(&BTreeMap::from([("governor".to_string(), "schedutil".to_string())])).expect("set");
    assert_eq!(tree.knobs.current("governor").as_deref(), Ok("schedutil"));
    // What they were is no value of one of them, and can be had again.
    let mixed = |value: &str| BTreeMap::from([("governor".to_string(), value.to_string())]);
    assert_eq!(setter.set(&mixed("powersave+performance")).expect("back").len(), 3);
    assert_eq!(tree.knobs.current("governor").as_deref(), Ok("powersave+performance"));
    let error = setter.set(&mixed("powersave+schedutil")).expect_err("one value per file").to_string();
    assert!(error.starts_with("governor is powersave+performance and cannot be set"), "{error}");
    setter.set(&mixed("schedutil")).expect("set");
    killed(setter);
    assert_eq!(tree.next().len(), 3);
    assert_eq!(tree.knobs.current("governor").as_deref(), Ok("powersave+performance"));
}

#[test]
fn a_mixed_value_that_cannot_be_read_says_why() {
    let tree = Tree::new();
    let file = |policy: u32| format!("/sys/devices/system/cpu/cpufreq/policy{policy}/scaling_governor");
    tree.file(&file(0), "powersave");
    // A folder in the place of a file.
    tree.file(&format!("{}/inside", file(1)), "performance");
    let mixed = BTreeMap::from([("governor".to_string(), "powersave+performance".to_string())]);
    let error = tree.knobs.setter().set(&mixed).expect_err("not readable");
    assert!(format!("{error:#}").starts_with("cannot read governor: "), "{error:#}");
}

#[test]
fn killed_during_the_restore() {
    let tree = Tree::new();
    killed(tree.off());
    // Put back, and killed before the journal was cleared.
    tree.file(CONTROL, "on");
    assert!(tree.next().is_empty());
    assert_eq!(tree.smt(), "on");
}

#[test]
fn killed_while_the_journal_was_rewritten() {
    let tree = Tree::new();
    killed(tree.off());
    let half = tree.knobs.store.0.join("knobs.json.new");
    fs::write(&half, "{\"schema\":").expect("a file");
    assert_eq!(tree.next(), ["smt is on again (was off)"]);
    assert!(!half.exists(), "what was cut off is no journal, and goes with it");
}

#[test]
fn what_somebody_else_changed_stays() {
    let tree = Tree::new();
    killed(tree.off());
    tree.file(CONTROL, "forceoff");
    let said = tree.next();
    assert!(said.len() == 1 && said[0].contains("Another program changed it"), "{said:?}");
    assert_eq!(tree.smt(), "forceoff");
    // And under a session that lives.
    let tree = Tree::new();
    let setter = tree.off();
    tree.file(CONTROL, "forceoff");
    let error = setter.set(&off()).expect_err("it is not ours any more");
    assert!(error.to_string().contains("another program set smt to forceoff"), "{error}");
    drop(setter);
    assert_eq!(tree.smt(), "forceoff");
}

#[test]
fn another_boot_has_its_own_knobs() {
    let tree = Tree::new();
    killed(tree.off());
    tree.file(BOOT, "boot-2");
    let said = tree.next();
    assert!(said.len() == 1 && said[0].contains("an earlier boot"), "{said:?}");
    assert_eq!(tree.smt(), "off", "the new boot's own value");
}

#[test]
fn a_second_session_is_refused() {
    let tree = Tree::new();
    let first = tree.off();
    let error = tree.knobs.setter().set(&BTreeMap::from([("smt".to_string(), "on".to_string())]));
    let error = error.expect_err("the first one lives").to_string();
    assert!(error.contains(&format!("process {} of assay", std::process::id())), "{error}");
    let error = tree.knobs.restore_what_was_left().expect_err("the first one lives").to_string();
    assert!(error.contains("has changed kernel settings"), "{error}");
    assert_eq!(tree.smt(), "off");
    drop(first);
    drop(tree.off());
}

#[test]
fn what_cannot_be_set_says_why() {
    let tree = Tree::new();
    let why = |state: &str| {
        tree.file(CONTROL, state);
        tree.knobs.unmet("smt", "off").unwrap_or_default()
    };
    assert_eq!(why("on"), "");
    assert!(why("notsupported").contains("no SMT"));
    assert!(why("notimplemented").contains("this kernel cannot"));
    assert!(why("forceoff").contains("for good at boot"));
    tree.file(CONTROL, "on");
    tree.file("/sys/devices/system/cpu/online", "0-2");
    tree.file("/sys/devices/system/cpu/present", "0-3");
    assert!(tree.knobs.unmet("smt", "off").is_some_and(|why| why.contains("were taken offline")));
    assert!(tree.knobs.unmet("thp", "never").is_some_and(|why| why.contains("this kernel has no")));
    assert!(tree.knobs.unmet("smt", "maybe").is_some_and(|why| why.contains("takes on, off")));
    assert!(tree.knobs.unmet("warp", "9").is_some_and(|why| why.contains("no setting is called")));
    let error = tree.knobs.setter().set(&off()).expect_err("CPUs are offline").to_string();
    assert!(error.contains("were taken offline"), "{error}");
    assert!(!tree.knobs.store.file().exists());
}

#[test]
fn a_damaged_or_foreign_journal_is_said_and_nothing_is_turned() {
    let tree = Tree::new();
    drop(tree.off());
    fs::write(tree.knobs.store.file(), "{").expect("a file");
    let error = tree.knobs.restore_what_was_left().expect_err("damaged").to_string();
    assert!(error.contains("cannot be parsed"), "{error}");
    assert!(tree.knobs.setter().set(&off()).is_err());
    fs::remove_file(tree.knobs.store.file()).expect("removed");
    killed(tree.off());
    let other = Tree::new();
    let elsewhere = Knobs { store: tree.knobs.store.clone(), ..other.knobs.clone() };
    let error = elsewhere.restore_what_was_left().expect_err("another tree").to_string();
    assert!(error.contains("is for the tree"), "{error}");
    assert_eq!((tree.smt().as_str(), other.smt().as_str()), ("off", "on"));
}

#[test]
fn a_journal_that_a_power_cut_or_another_version_left_in_another_boot_is_cleared() {
    let tree = Tree::new();
    drop(tree.off());
    let root = tree.folder.path();
    let write = |text: &str| fs::write(tree.knobs.store.file(), text).expect("a file");
    let of = |boot: &str, root: &Path| {
        let other = serde_json::json!({"schema": 9, "boot_id": boot, "root": root, "all": "otherwise"});
        other.to_string()
    };
    for blank in ["", " \n", "\0\0\0\0"] {
        write(blank);
        assert_eq!(tree.next(), Vec::<String>::new());
        write(blank);
        drop(tree.off());
    }
    write(&of("boot-0", root));
    let said = tree.next();
    assert!(said.len() == 1 && said[0].contains("an earlier boot"), "{said:?}");
    // In this boot its knobs may be changed; another tree's are not Assay's.
    for other in [of("boot-1", root), of("boot-0", Path::new("/elsewhere"))] {
        write(&other);
        let error = tree.knobs.restore_what_was_left().expect_err("not understood").to_string();
        assert!(error.contains("cannot be parsed"), "{error}");
        assert_eq!(fs::read_to_string(tree.knobs.store.file()).expect("it stays"), other);
    }
}

#[test]
fn a_journal_that_is_far_too_long_is_not_read() {
    let tree = Tree::new();
    drop(tree.off());
    let file = fs::File::create(tree.knobs.store.file()).expect("a file");
    file.set_len(3 << 30).expect("sparse");
    let error = format!("{:#}", tree.knobs.restore_what_was_left().expect_err("too long"));
    assert!(error.contains("3221225472 bytes") && error.contains("knobs.json"), "{error}");
    assert_eq!(tree.knobs.store.file().metadata().expect("it stays").len(), 3 << 30);
}

#[test]
fn a_journal_that_others_may_write_to_is_not_obeyed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store(folder.path().join("state"));
    let mut journal = Journal::new(folder.path(), None);
    journal.entries.push(Entry {
        knob: "k".into(),
        file: "f".into(),
        before: "1".into(),
        assay_values: vec!["2".into()],
    });
    drop(store.lock().expect("a lock"));
    for (mode, obeyed) in [(0o600, true), (0o644, true), (0o620, false), (0o602, false)] {
        store.write(&journal).expect("written");
        assert_eq!(store.file().metadata().expect("a file").permissions().mode() & 0o777, 0o600);
        fs::set_permissions(store.file(), fs::Permissions::from_mode(mode)).expect("changed");
        let read = store.read(folder.path(), None);
        assert_eq!(read.is_ok(), obeyed, "{mode:o}: {read:?}");
    }
    let told = format!("{:#}", store.read(folder.path(), None).expect_err("it is not obeyed"));
    assert!(told.contains("knobs.json") && told.contains("may write to it"), "{told}");
}

#[test]
fn a_lock_or_journal_that_is_a_link_is_neither_followed_nor_obeyed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (store, theirs) = (Store(folder.path().join("state")), folder.path().join("theirs"));
    fs::create_dir(&store.0).expect("a folder");
    let links: [fn(&std::path::Path, &std::path::Path) -> std::io::Result<()>; 2] =
        [|from, to| std::os::unix::fs::symlink(from, to), |from, to| fs::hard_link(from, to)];
    let journal = serde_json::to_string(&Journal::new(folder.path(), None)).expect("JSON");
    for name in ["knobs.lock", "knobs.json"] {
        for link in links {
            fs::write(&theirs, &journal).expect("a file");
            link(&theirs, &store.0.join(name)).expect("a link");
            let told = match name {
                "knobs.lock" => store.lock().map(drop),
                _ => store.read(folder.path(), None).map(drop),
            };
            let told = format!("{:#}", told.expect_err("a link"));
            assert!(told.contains(name), "{told}");
            assert_eq!(fs::read_to_string(&theirs).expect("there"), journal);
            fs::remove_file(store.0.join(name)).expect("removed");
        }
        // One that leads nowhere makes nothing.
        std::os::unix::fs::symlink(folder.path().join("nowhere"), store.0.join(name)).expect("a link");
        assert!(store.lock().is_err() || name == "knobs.json");
        assert!(!folder.path().join("nowhere").exists());
        fs::remove_file(store.0.join(name)).expect("removed");
    }
    assert!(store.lock().expect("a folder of ours").is_some());
}
