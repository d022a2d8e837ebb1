//! The recipes of contrib/: each is run here with invented samples, which takes a moment, and those
//! for Ansible, Slurm and ReFrame with the real engines and real runs by `make fleet`.

mod ansible;
mod cluster;
mod hosts;
mod reframe;
mod slurm;
mod snippets;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::host::fleet_tool;
use crate::runs::{end, pretended, read, run_file};

/// The benchmark that the recipes' runs measure here, and its key figure.
const ONLY: &str = "syscall.getpid";

fn recipe(path: &str) -> PathBuf {
    testkit::root().join("contrib").join(path)
}

/// A file that can be started.
fn program(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("made executable");
}

/// A folder in which a recipe works, with a program `assay` that its runs' words are added to.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn with(words: &str) -> Stage {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("bin")).expect("a folder");
        let assay = testkit::program().display();
        let text = format!(
            "#!/bin/sh\nverb=$1\nshift\n[ \"$verb\" != run ] || set -- \"$@\" {words}\nexec {assay} \"$verb\" \"$@\"\n"
        );
        program(&folder.path().join("bin/assay"), &text);
        Stage { folder }
    }

    /// Runs have invented samples.
    fn pretending() -> Stage {
        Stage::with(pretended(ONLY).trim_start_matches("--quick "))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command in this folder that finds `assay`, and nothing of who started the test.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.set_up(&mut command);
        command
    }

    fn set_up(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(self.folder.path())
            .env("PATH", format!("{}/bin:{path}", self.folder.path().display()));
        command.env("HOME", self.folder.path()).env("LANG", "C.UTF-8").env_remove("LC_ALL");
        for name in ["ASSAY_HOST", "ASSAY_LABELS", "SLURM_CONF", "SLURMD_NODENAME"] {
            command.env_remove(name);
        }
    }

    /// Writes specs that an invented run meets, misses, and leaves undecided: the limit is the
    /// figure's own value. With the exit code of each.
    fn specs(&self) -> [(PathBuf, i32); 3] {
        let dir = tempfile::tempdir().expect("a folder");
        end(&mut crate::runs::run_into(dir.path(), &pretended(ONLY))).expect(0);
        let run = read(&run_file(dir.path()));
        let summary = run.summary.expect("a summary");
        let figure = summary.series.iter().find(|one| one.key.starts_with(ONLY)).expect("the figure");
        let value = figure.median.expect("a value");
        let spec = |name: &str, limit: f64, code: i32| {
            let path = self.path(&format!("{name}.toml"));
            let key = &figure.key;
            let text = format!("name = \"{name}\"\n[[limit]]\nseries = \"{key}\"\nmax = \"{limit} ns\"\n");
            fs::write(&path, text).expect("written");
            (path, code)
        };
        [spec("met", 3.0 * value, 0), spec("missed", value / 3.0, 1), spec("astride", value, 4)]
    }
}

/// What a YAML text says, by PyYAML.
fn yaml(test: &str, text: &str) -> Option<Value> {
    let mut command = fleet_tool(test, "python3")?;
    command.args(["-c", "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin), default=str))"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "not YAML: {text}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}
