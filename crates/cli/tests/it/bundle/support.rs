//! What tools of support collect of Assay: `contrib/sos` and `contrib/supportconfig`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::host::{is_root, skipped, works};
use crate::runs::end;

fn contrib(path: &str) -> PathBuf {
    testkit::root().join("contrib").join(path)
}

/// A command whose shell finds our program.
fn finding_assay(mut command: Command) -> Command {
    let own = testkit::program().parent().unwrap_or(Path::new("/")).display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{own}:{path}")).env("LANG", "C.UTF-8");
    command
}

/// The host's own JSON among what was printed.
fn machine_in(text: &str) -> Value {
    let begin = text.find("\n{\n").map_or(0, |at| at + 1);
    let mut found = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
    found.next().expect("JSON").expect("of a machine")
}

#[test]
fn supportconfig_runs_a_plugin() {
    let plugin = contrib("supportconfig/assay");
    let mode = fs::metadata(&plugin).expect("a plugin").permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "supportconfig runs executables only");
    let mut shell = finding_assay(Command::new("sh"));
    let ended = end(shell.arg(&plugin));
    assert!(machine_in(&ended.expect(0).out)["cpus"].is_object(), "{}", ended.out);
}

#[test]
fn sos_reads_the_drop_in() {
    let text = fs::read_to_string(contrib("sos/assay")).expect("a drop-in");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let (files, commands): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with(':'));
    for command in &commands {
        let mut shell = finding_assay(Command::new("sh"));
        end(shell.args(["-c", command])).expect(0);
    }
    for file in files {
        let (path, megabytes) = file[1..].split_once(' ').expect("a path and a size");
        assert!(path.starts_with('/') && megabytes.parse::<u32>().is_ok(), "{file}");
    }
    let test = "bundle::support::sos_reads_the_drop_in";
    if !is_root() || !works("sos", &["report", "--help"]) || !works("unshare", &["-m", "true"]) {
        return skipped(test, "sos is not installed, or no mounts of our own can be made");
    }
    // Drop-ins and programs of our own, seen by this one sos alone, which sets its own PATH.
    let folder = tempfile::tempdir().expect("a folder");
    let [extras, programs] = ["extras.d", "bin"].map(|name| folder.path().join(name));
    fs::create_dir(&extras).and_then(|()| fs::create_dir(&programs)).expect("folders");
    fs::copy(contrib("sos/assay"), extras.join("assay")).expect("copied");
    std::os::unix::fs::symlink(testkit::program(), programs.join("assay")).expect("a link");
    let script = "mount --bind \"$1\" /etc/sos/extras.d && mount --bind \"$2\" /usr/local/bin && \
                  sos report --batch --build -o sos_extras --tmp-dir \"$3\"";
    let mut shell = finding_assay(Command::new("unshare"));
    shell.args(["-m", "sh", "-c", script, "sh"]).arg(&extras).arg(&programs).arg(folder.path());
    let ended = end(&mut shell);
    ended.expect(0);
    let mut folders = vec![folder.path().to_path_buf()];
    let mut collected = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() && !path.is_symlink() => folders.push(path),
                path => collected.push(path),
            }
        }
    }
    let named = |path: &&PathBuf| path.file_name().is_some_and(|name| name == "assay_machine_--json");
    let machine = collected.iter().find(named).unwrap_or_else(|| panic!("{}", ended.out));
    assert!(machine_in(&fs::read_to_string(machine).expect("text"))["cpus"].is_object());
}
