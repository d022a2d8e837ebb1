//! Good files of every kind that the program reads: this repository's, shared fixtures where they
//! are, and invented runs.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::runs::{end, pretended, recorded, run_file, run_into};

/// What reads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Run,
    /// `report.json` of a run.
    Saved,
    /// A result of another tool.
    Foreign,
    /// What `machine --save` wrote.
    Machine,
    /// What dmidecode prints.
    Modules,
    /// Settings of tuned or sysctl.
    Profile,
}

pub const KINDS: [Kind; 6] =
    [Kind::Run, Kind::Saved, Kind::Foreign, Kind::Machine, Kind::Modules, Kind::Profile];

pub struct Seeds {
    pub files: Vec<(Kind, Vec<u8>)>,
}

/// Visits that are kept of a run, and bytes of anything else: what is changed five thousand times
/// is small.
const LINES: usize = 40;
const MOST: usize = 400 << 10;

impl Seeds {
    pub fn gather() -> Seeds {
        let root = testkit::root();
        let mut seeds = Seeds { files: Vec::new() };
        seeds.all(Kind::Foreign, &root.join("tests/foreign"));
        seeds.all(Kind::Foreign, &root.join("fuzz/corpus/import"));
        seeds.all(Kind::Run, &root.join("fuzz/corpus/run_file"));
        seeds.all(Kind::Machine, &root.join("tests/machines"));
        let shared = root.join("../shared/fixtures");
        for kind in ["fio", "hackbench", "lmbench", "speccpu2017", "unixbench"] {
            seeds.all(Kind::Foreign, &shared.join("results").join(kind));
        }
        seeds.all(Kind::Foreign, &shared.join("faults"));
        seeds.all(Kind::Run, &shared.join("runs"));
        seeds.all(Kind::Modules, &shared.join("dmi"));
        seeds.all(Kind::Modules, &root.join("fuzz/corpus/dmidecode_text"));
        seeds.invented();
        let tuned = "[main]\nsummary=Throughput\ninclude=nothing\n[cpu]\ngovernor=performance\n[vm]\n\
                     transparent_hugepages=always\n[sysctl]\nvm.swappiness=10\nkernel.sched_autogroup_enabled=0\n";
        for text in [tuned, "vm.swappiness = 10\nkernel.sched_autogroup_enabled = 0\n# a remark\nthp=never\n"]
        {
            seeds.files.push((Kind::Profile, text.as_bytes().to_vec()));
        }
        seeds
    }

    /// One of a kind: of runs three times in four a whole one, of which there are fewer than of
    /// what once broke a reader.
    pub fn any(&self, kind: Kind, random: &mut fastrand::Rng) -> &[u8] {
        let all = self.of(kind);
        let whole: Vec<&[u8]> = all.iter().copied().filter(|file| file.len() > 8 << 10).collect();
        let some = if kind == Kind::Run && !whole.is_empty() && random.u8(0..4) > 0 { whole } else { all };
        some[random.usize(0..some.len())]
    }

    pub fn of(&self, kind: Kind) -> Vec<&[u8]> {
        self.files.iter().filter(|(own, _)| *own == kind).map(|(_, file)| file.as_slice()).collect()
    }

    fn all(&mut self, kind: Kind, folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
        files.sort();
        for file in files {
            let documents = ["md", "sh", "c", "expected"].map(std::ffi::OsStr::new);
            if !documents.iter().any(|own| file.extension() == Some(*own)) {
                self.take(kind, fs::read(&file).expect("readable"));
            }
        }
    }

    fn take(&mut self, kind: Kind, mut file: Vec<u8>) {
        if file.starts_with(&[0x1f, 0x8b]) {
            let mut plain = Vec::new();
            // What is cut off on purpose is taken as far as it goes.
            let _ = MultiGzDecoder::new(file.as_slice()).take(64 << 20).read_to_end(&mut plain);
            file = plain;
        }
        if kind == Kind::Run {
            let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
            let last = lines.len().saturating_sub(1).max(LINES.min(lines.len()));
            file = [&lines[..LINES.min(lines.len())], &lines[last..]].concat().concat();
        }
        // A host is read whole or not at all; the largest are left out, as smaller ones of their
        // kind contain the same.
        if file.len() <= MOST || kind == Kind::Run {
            self.files.push((kind, file));
        }
    }

    fn invented(&mut self) {
        for only in ["cpu.clock,memory.latency", "ipc", "disk", "network", "rate.integer"] {
            let out = tempfile::tempdir().expect("a folder");
            if end(&mut run_into(out.path(), &pretended(only))).code == 0 {
                self.take(Kind::Run, fs::read(run_file(out.path())).expect("a run file"));
                self.take(Kind::Saved, fs::read(out.path().join("report.json")).expect("results"));
            }
        }
        let out = tempfile::tempdir().expect("a folder");
        let mut sweep = crate::assay();
        let words = "sweep hackbench --quick --pretend 7 --knob policy=other,batch --knob slice_ns=1ms,2ms,3ms --from";
        sweep.args(words.split_whitespace()).arg(recorded()).arg("--out").arg(out.path());
        if end(&mut sweep).code == 0 {
            self.take(Kind::Run, fs::read(run_file(out.path())).expect("a run file"));
        }
    }
}

#[test]
fn there_are_seeds_of_every_kind() {
    let seeds = Seeds::gather();
    for kind in KINDS {
        let shared_only = kind == Kind::Modules;
        assert!(shared_only || !seeds.of(kind).is_empty(), "{kind:?}");
    }
    assert!(seeds.of(Kind::Run).iter().any(|file| String::from_utf8_lossy(file).contains("\"sweep\":{")));
}
