//! The Ansible role: on this host with invented samples, and by ssh on hosts without Python.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::hosts::{Keys, impossible};
use super::{Stage, recipe};
use crate::host::{fleet_tool, skipped, works};
use crate::runs::{end, read};

/// `ansible-playbook` of the example, which leaves nothing outside of the stage.
fn playbook(test: &str, stage: &Stage, assay: &str) -> Option<Command> {
    let mut command = fleet_tool(test, "ansible-playbook")?;
    stage.set_up(&mut command);
    let set = |name: &str, value: String| format!("{name}={value}");
    command.arg("-i").arg(stage.path("inventory.ini")).arg(recipe("ansible/site.yml"));
    command.args(["-e", &set("assay_binary", assay.to_string())]);
    command.args(["-e", &set("assay_results", stage.path("runs").display().to_string())]);
    command.env("ANSIBLE_HOME", stage.path("ansible")).env("ANSIBLE_NOCOLOR", "1");
    command.env("ANSIBLE_REMOTE_TEMP", stage.path("remote")).env("ANSIBLE_SSH_ARGS", "-o ControlPersist=10");
    // What a host's own settings say is none of the role's.
    fs::write(stage.path("ansible.cfg"), "").expect("written");
    Some(command)
}

/// The compressed run files that came to the controller.
fn fetched(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.path("runs")).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".assay.jsonl.gz"));
    files.sort();
    files
}

#[test]
fn role_measures_brings_home_and_judges() {
    let test = "role_measures_brings_home_and_judges";
    let stage = Stage::pretending();
    let inventory = "n1 ansible_connection=local ansible_python_interpreter=/nonexistent assay_labels='{\"rack\": \"r7\", \"row\": \"2\"}'\n";
    fs::write(stage.path("inventory.ini"), inventory).expect("written");
    let [_, (missed, _), _] = stage.specs();
    let play = || {
        let mut command = playbook(test, &stage, &stage.path("bin/assay").display().to_string())?;
        command.args(["-e", &format!("assay_scratch={}", stage.path("scratch").display())]);
        command.args(["-e", &format!("assay_spec={}", missed.display())]);
        Some(command)
    };
    let Some(mut command) = play() else { return };
    let ended = end(&mut command);
    // The play fails by what the check says, and by that alone.
    assert!(ended.code == 2 && ended.out.contains("n1 (invented samples): REJECT: System call"), "{ended:?}");
    assert!(ended.out.lines().any(|line| line.starts_with("n1 ") && line.contains("failed=0")), "{ended:?}");
    let files = fetched(&stage);
    assert_eq!(files.len(), 1, "{files:?}");
    let run = read(&files[0]);
    assert_eq!(run.header.host, "n1");
    assert_eq!(run.header.labels.get("rack").map(String::as_str), Some("r7"), "{:?}", run.header.labels);
    assert_eq!(run.header.labels.len(), 2, "{:?}", run.header.labels);
    assert!(stage.path("runs/assay.xml").is_file() && !stage.path("scratch").exists());
    // One run alone confirms nothing.
    let mut command = play().expect("it is here");
    command.args(["-e", "assay_confirmed=true", "--start-at-task", "Hold the runs against the spec"]);
    let ended = end(&mut command);
    assert!(ended.code == 0 && ended.out.contains("n1 (invented samples): UNDECIDED: "), "{ended:?}");
}

/// Nine hosts, one after the other, one of them with a quarter of a CPU.
#[test]
#[ignore = "make fleet"]
fn real_ansible_over_ssh_names_the_slowed_host() {
    let test = "real_ansible_over_ssh_names_the_slowed_host";
    if let Some(why) = impossible() {
        return skipped(test, why);
    }
    if !works("/usr/sbin/sshd", &["-V"]) || !works("ssh", &["-V"]) {
        return skipped(test, "ssh or sshd is not here");
    }
    let stage = Stage::with("");
    let keys = Keys::new(stage.folder.path());
    let slowed = "n5";
    let hosts = (1..=9).map(|number| format!("n{number}")).map(|name| {
        let quota = (name == slowed).then_some((25_000, 100_000));
        keys.host(&name, quota)
    });
    let hosts = match hosts.collect::<Result<Vec<_>, String>>() {
        Ok(hosts) => hosts,
        Err(why) => return skipped(test, why),
    };
    fs::write(stage.path("inventory.ini"), keys.inventory(&hosts, slowed)).expect("written");
    fs::write(stage.path("spec.toml"), "name = \"whole\"\n[machine]\nwhole = true\n").expect("written");

    let assay = std::path::PathBuf::from(crate::lab::static_build());
    let Some(mut command) = playbook(test, &stage, &assay.display().to_string()) else { return };
    let plan = end(command.args(["--check", "-e", "assay_wave=1"]));
    assert!(plan.code == 0 && fetched(&stage).is_empty(), "{plan:?}");
    assert!(plan.out.contains("syscall.getpid"), "{}", plan.out);

    let Some(mut command) = playbook(test, &stage, &assay.display().to_string()) else { return };
    let words = "--quick --only syscall.getpid --budget 10s --force";
    command.args(["-e", "assay_wave=1", "-e", &format!("assay_run='{words}'")]);
    command.args(["-e", &format!("assay_spec={}", stage.path("spec.toml").display())]);
    command.args(["-e", &format!("assay_scratch={}", stage.path("scratch").display())]);
    let begin = Instant::now();
    let ended = end(&mut command);
    let wall = begin.elapsed().as_secs_f64();
    // All that it says but the hosts' own tasks.
    println!("{}", ended.out.split("PLAY [Judge").last().unwrap_or_default());
    let files = fetched(&stage);
    assert_eq!(files.len(), hosts.len(), "{files:?}: {ended:?}");
    let measured: f64 = files.iter().map(|file| read(file).summary.expect("a summary").elapsed_s).sum();
    println!(
        "{} hosts in turn: {wall:.1} s, of which the runs took {measured:.1} s: {:.1} s a host beside them \
         (all took {:.1} s of CPU a host)",
        hosts.len(),
        (wall - measured) / hosts.len() as f64,
        ended.cpu.as_secs_f64() / hosts.len() as f64
    );

    let mut peers = crate::assay();
    let ended = end(peers.arg("peers").arg(stage.path("runs")).arg("--json"));
    let peers: Value = serde_json::from_str(&ended.out).expect("JSON");
    let left_out = peers["left_out"].as_array().expect("a list");
    let own = left_out.iter().find(|one| one["file"].as_str().is_some_and(|file| file.contains("/n5-")));
    let why = own.and_then(|one| one["why"].as_str()).unwrap_or_default();
    assert!(why.contains("quota of 0.25 of"), "{left_out:?}");
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert_eq!(ended.code, 0, "{}", ended.out);
    println!("peers of {slowed}: {why}");
}
