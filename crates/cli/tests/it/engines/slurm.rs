//! The Slurm recipe: what the job leaves, when the health check drains, and both in a real Slurm.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cluster::{Cluster, until};
use super::reframe::{reframe, reported};
use super::{Stage, program, recipe};
use crate::host::{fleet_tool, is_root, skipped};
use crate::runs::{end, read};

/// A node's health check with a `scontrol` that notes what it is asked.
struct Node {
    stage: Stage,
}

impl Node {
    fn new() -> Option<Node> {
        let user = end(std::process::Command::new("id").arg("-un"));
        if user.code != 0 {
            return None;
        }
        let stage = Stage::pretending();
        fs::create_dir(stage.path("verdicts")).expect("a folder");
        let shown = stage.folder.path().display();
        let conf = format!(
            "verdicts={shown}/verdicts\nuser={}\nstate={shown}/state\nconf=our.conf\napart=900\n",
            user.out.trim()
        );
        fs::write(stage.path("drain.conf"), conf).expect("written");
        let asked = "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >>asked\necho \"$SLURM_CONF\" >>asked\n[ ! -e refuse ]\n";
        program(&stage.path("bin/scontrol"), asked);
        program(&stage.path("bin/sbatch"), "#!/bin/sh\necho \"$*\" >>sent\n");
        Some(Node { stage })
    }

    fn verdict(&self) -> PathBuf {
        self.stage.path("verdicts/n1")
    }

    /// The verdict of a job that began a quarter of an hour after the first rejection.
    fn put(&self, node: &str, exit: &str, job: &str, said: &str) {
        self.put_at(node, exit, ["2000000900", "2000000000"], job, said);
    }

    fn put_at(&self, node: &str, exit: &str, [began, since]: [&str; 2], job: &str, said: &str) {
        let text =
            format!("node={node}\nexit={exit}\nbegan={began}\nsince={since}\njob={job}\nsaid={said}\n");
        fs::write(self.verdict(), text).expect("written");
    }

    /// What Slurm was asked by one health check.
    #[track_caller]
    fn asked(&self) -> Vec<String> {
        let mut command = self.stage.command("sh");
        command.arg(recipe("slurm/assay-drain")).env("SLURMD_NODENAME", "n1");
        end(command.env("ASSAY_DRAIN_CONF", self.stage.path("drain.conf"))).expect(0);
        let asked = self.stage.path("asked");
        let text = fs::read_to_string(&asked).unwrap_or_default();
        let _ = fs::remove_file(asked);
        text.lines().map(str::to_string).collect()
    }
}

#[test]
fn rejected_alone_drains_and_drains_once() {
    let Some(node) = Node::new() else {
        return skipped("rejected_alone_drains_and_drains_once", "this user has no name");
    };
    assert!(node.asked().is_empty(), "no verdict");
    for exit in ["0", "2", "3", "4", "130", "", "11", "1 "] {
        node.put("n1", exit, "1", "REJECT: it is slow");
        assert!(node.asked().is_empty(), "exit {exit:?}");
    }
    // A reason is one word for Slurm, whatever a file holds.
    node.put("n1", "1", "2", "REJECT: a\tb \u{1b}[31m$(touch owned) `x` \"y\" state=idle");
    let refused = node.stage.path("refuse");
    fs::write(&refused, "").expect("written");
    assert!(!node.asked().is_empty());
    fs::remove_file(&refused).expect("removed");
    let asked = node.asked();
    let reason = "reason=assay: REJECT: ab [31m$(touch owned) `x` \"y\" state=idle";
    assert_eq!(
        asked,
        ["update", "nodename=n1", "state=drain", reason, "our.conf"],
        "what failed is tried again"
    );
    assert!(!node.stage.path("owned").exists());
    assert!(node.asked().is_empty(), "it was done");
    node.put("n1", "1", "3", "REJECT: again");
    assert_eq!(node.asked().len(), 5, "another job's verdict");
    node.put("n1", "1", "4", &"long ".repeat(100));
    assert!(node.asked()[3].len() < 140);
}

#[test]
fn verdicts_of_others_and_old_ones_drain_nobody() {
    let Some(node) = Node::new() else {
        return skipped("verdicts_of_others_and_old_ones_drain_nobody", "this user has no name");
    };
    let put = |job: &str| node.put("n1", "1", job, "REJECT: it is slow");
    node.put("n2", "1", "1", "REJECT: it is slow");
    assert!(node.asked().is_empty(), "another node's");
    put("2");
    assert!(end(node.stage.command("touch").args(["-d", "8 days ago"]).arg(node.verdict())).code == 0);
    assert!(node.asked().is_empty(), "a week old");
    put("3");
    fs::rename(node.verdict(), node.stage.path("elsewhere")).expect("moved");
    symlink(node.stage.path("elsewhere"), node.verdict()).expect("a link");
    assert!(node.asked().is_empty(), "a link");
    fs::remove_file(node.verdict()).expect("removed");
    fs::create_dir(node.verdict()).expect("a folder");
    assert!(node.asked().is_empty(), "a folder");
    fs::remove_dir(node.verdict()).expect("removed");
    put("4");
    if is_root() {
        chown(node.verdict(), Some(65534), Some(65534)).expect("given away");
        assert!(node.asked().is_empty(), "another user's");
        chown(node.verdict(), Some(0), Some(0)).expect("taken back");
    }
    assert_eq!(node.asked().len(), 5, "its own, new");
}

#[test]
fn one_rejection_or_two_of_one_time_drain_nobody() {
    let Some(node) = Node::new() else {
        return skipped("one_rejection_or_two_of_one_time_drain_nobody", "this user has no name");
    };
    for times in [
        ["2000000900", ""],
        ["", "2000000000"],
        ["", ""],
        ["2000000899", "2000000000"],
        ["2000000000", "2000000900"],
        ["2000000900", "x"],
        ["2000000900", "a[$(touch owned)]"],
    ] {
        node.put_at("n1", "1", times, "1", "REJECT: it is slow");
        assert!(node.asked().is_empty(), "{times:?}");
    }
    assert!(!node.stage.path("owned").exists());
    node.put("n1", "1", "1", "REJECT: it is slow");
    assert_eq!(node.asked().len(), 5);
}

#[test]
fn job_leaves_a_verdict_and_its_run_file() {
    let Some(node) = Node::new() else {
        return skipped("job_leaves_a_verdict_and_its_run_file", "this user has no name");
    };
    let stage = &node.stage;
    let conf = stage.path("drain.conf");
    let text = fs::read_to_string(&conf).expect("written");
    fs::write(&conf, text.replace("apart=900", "apart=0")).expect("written");
    let [met, missed, astride] = stage.specs();
    let mut before = String::new();
    let value = |verdict: &str, name: &str| {
        let line = verdict.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.expect("a line").to_string()
    };
    // The second rejection in a row drains, the first has the job sent again; a break begins anew.
    let jobs = [
        (&met, false),
        (&missed, false),
        (&missed, true),
        (&missed, true),
        (&astride, false),
        (&missed, false),
    ];
    for (job_id, ((spec, code), second)) in jobs.into_iter().enumerate() {
        let _ = fs::remove_dir_all(stage.path("runs"));
        let mut job = stage.command("sh");
        job.arg(recipe("slurm/assay.sbatch"));
        job.env("SLURMD_NODENAME", "n1").env("SLURM_JOB_ID", job_id.to_string());
        job.env("ASSAY_SPEC", spec).env("TMPDIR", stage.folder.path());
        for (name, folder) in [("ASSAY_RESULTS", "runs"), ("ASSAY_VERDICTS", "verdicts")] {
            job.env(name, stage.path(folder));
        }
        end(&mut job).expect(*code);
        let verdict = fs::read_to_string(node.verdict()).expect("a verdict");
        assert!(verdict.starts_with(&format!("node=n1\nexit={code}\nbegan=")), "{verdict}");
        assert_eq!(value(&verdict, "job"), job_id.to_string());
        let since = value(&verdict, "since");
        match second {
            true => {
                let first = value(&before, "since");
                assert_eq!(since, if first.is_empty() { value(&before, "began") } else { first });
            }
            false => assert_eq!(since, "", "{verdict}"),
        }
        let word = ["ACCEPT", "REJECT", "CANNOT TELL"]
            [[0, 1, 4].iter().position(|own| own == code).expect("a code")];
        assert!(value(&verdict, "said").contains(&format!(": {word}: ")), "{verdict}");
        let files = names(&stage.path("runs"));
        assert!(files.len() == 1 && files[0].starts_with("n1-"), "{files:?}");
        assert_eq!(read(&stage.path("runs").join(&files[0])).header.host, "n1");
        assert_eq!(names(&stage.path("verdicts")), ["n1"]);
        assert_eq!(node.asked().len(), if second { 5 } else { 0 }, "{verdict}");
        let sent = fs::read_to_string(stage.path("sent")).unwrap_or_default();
        let _ = fs::remove_file(stage.path("sent"));
        match *code == 1 && !second {
            true => assert!(sent.starts_with("-w n1 --begin=now+30minutes "), "{sent}"),
            false => assert_eq!(sent, ""),
        }
        before = verdict;
    }
    assert!(!names(stage.folder.path()).iter().any(|name| name.starts_with("tmp.")));
    let mode = fs::metadata(recipe("slurm/assay-drain")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "a health check is started");
}

/// All names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A job on each of two nodes: the one under a quota is rejected, measured again and drained, the
/// other one's verdict is open and it stays. Then ReFrame sends its test to the same Slurm.
#[test]
#[ignore = "make fleet"]
fn real_slurm_drains_the_rejected_node_alone() {
    let test = "real_slurm_drains_the_rejected_node_alone";
    let begin = Instant::now();
    let cluster = match Cluster::start("--only syscall.getpid --budget 10s --force") {
        Ok(cluster) => cluster,
        Err(why) => return skipped(test, why),
    };
    let seconds = |begin: Instant| begin.elapsed().as_secs_f64();
    println!("Slurm with two idle nodes after {:.1} s", seconds(begin));
    let whole = "name = \"whole\"\n[machine]\nwhole = true\n";
    // No figure here has a cause that is known: whether it is low enough stays open.
    let open = "[[limit]]\nseries = \"syscall.getpid@one-cpu#latency\"\nmax = \"1 s\"\nverdict = [\"trusted_with_cause\"]\n";
    fs::write(cluster.stage.path("whole.toml"), whole).expect("written");
    fs::write(cluster.stage.path("open.toml"), format!("{whole}{open}")).expect("written");
    let begin = Instant::now();
    cluster.submit("node1", "open.toml").expect(0);
    cluster.submit("node2", "whole.toml").expect(0);
    until(|| cluster.verdict("node1").is_some() && cluster.verdict("node2").is_some()).expect("two verdicts");
    println!("two jobs at once, {:.1} s", seconds(begin));
    let twice = || cluster.verdict("node2").is_some_and(|verdict| !verdict.contains("\nsince=\n"));
    until(twice).expect("the rejected one is measured again");
    println!("and the rejected one again, {:.1} s", seconds(begin));
    let verdicts = ["node1", "node2"].map(|node| cluster.verdict(node).expect("a verdict"));
    println!("{}\n{}", verdicts[0], verdicts[1]);
    assert!(verdicts[0].contains("\nexit=4\n") && verdicts[1].contains("\nexit=1\n"), "{verdicts:?}");
    let begin = Instant::now();
    until(|| cluster.state("node2") == "drain").expect("node2 is drained");
    let reason = cluster.says("scontrol", &["show", "node", "node2"]);
    println!(
        "drained {:.1} s after the verdict: {}",
        seconds(begin),
        reason.lines().find(|line| line.contains("Reason=")).unwrap_or_default().trim()
    );
    assert!(reason.contains("Reason=assay: REJECT: whole machine"), "{reason}");
    // A job for it waits; resumed it stays so, though the verdict is there.
    cluster.submit("node2", "whole.toml").expect(0);
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(cluster.says("squeue", &["-h", "-o", "%t"]).trim(), "PD");
    assert_eq!(cluster.says("scancel", &["--user=root"]), "");
    cluster.says("scontrol", &["update", "nodename=node2", "state=resume"]);
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert_eq!([cluster.state("node1"), cluster.state("node2")], ["idle", "idle"]);

    let site = "site_configuration = {'systems': [{'name': 'assay', 'hostnames': ['.*'], 'partitions': [{'name': 'all', \
                'scheduler': 'squeue', 'launcher': 'local', 'environs': ['builtin'], 'access': ['-w node1']}]}], \
                'environments': [{'name': 'builtin'}]}\n";
    fs::write(cluster.stage.path("site.py"), site).expect("written");
    if fleet_tool(test, "reframe").is_none() {
        return;
    }
    let begin = Instant::now();
    let conf = cluster.stage.path("slurm.conf").display().to_string();
    let words = ["-C", "site.py", "-S", "assay=assay"];
    let ended = reframe(test, &cluster.stage, &words, &[("SLURM_CONF", &conf)]).expect("it is here");
    let (result, why, figures) = reported(&cluster.stage);
    println!("ReFrame over Slurm: {result} after {:.1} s, {figures:?}", seconds(begin));
    assert!(result == "pass" && figures.iter().any(|one| one.ends_with(":syscall")), "{why}: {}", ended.out);
}
