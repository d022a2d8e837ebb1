//! The Slurm recipe: what the job leaves, when the health check drains, and both in a real Slurm.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::cluster::{Cluster, until};
use super::reframe::{reframe, reported};
use super::{Stage, program, recipe};
use crate::host::{fleet_tool, is_root, skipped};
use crate::runs::{end, read, write_earlier};

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
            "verdicts={shown}/verdicts\nuser={}\nstate={shown}/state\nconf=our.conf\n",
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

    /// A job's verdict.
    fn put(&self, node: &str, exit: &str, job: &str, said: &str) {
        let text = format!("node={node}\nexit={exit}\njob={job}\nsaid={said}\n");
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

/// What a job left, and what it and the health check behind it asked of Slurm.
struct Left {
    exit: i32,
    said: String,
    sent: String,
    is_drained: bool,
}

impl Node {
    /// One job, and the health check after it.
    #[track_caller]
    fn job(&self, spec: &Path, id: u32) -> Left {
        let stage = &self.stage;
        let mut job = stage.command("sh");
        job.arg(recipe("slurm/assay.sbatch"));
        job.env("SLURMD_NODENAME", "n1").env("SLURM_JOB_ID", id.to_string());
        job.env("ASSAY_SPEC", spec).env("TMPDIR", stage.folder.path());
        for (name, folder) in [("ASSAY_RESULTS", "runs"), ("ASSAY_VERDICTS", "verdicts")] {
            job.env(name, stage.path(folder));
        }
        let ended = end(&mut job);
        let verdict = fs::read_to_string(self.verdict()).expect("a verdict");
        let lines: Vec<&str> = verdict.lines().collect();
        let [node, exit, job, said] = lines.as_slice() else { panic!("{verdict}") };
        assert_eq!((*node, *job), ("node=n1", format!("job={id}").as_str()), "{verdict}");
        assert_eq!(*exit, format!("exit={}", ended.code), "{}", ended.err);
        let sent = fs::read_to_string(stage.path("sent")).unwrap_or_default();
        let _ = fs::remove_file(stage.path("sent"));
        assert_eq!(names(&stage.path("verdicts")), ["n1"]);
        Left { exit: ended.code, said: said.to_string(), sent, is_drained: self.asked().len() == 5 }
    }

    /// Half an hour passes: the runs that are there get an earlier begin.
    fn half_an_hour_later(&self) {
        for name in names(&self.stage.path("runs/n1")) {
            let run = self.stage.path("runs/n1").join(&name);
            let older = run.with_file_name(format!("1{}", name.trim_end_matches(".gz")));
            write_earlier(&run, 1800, &older);
            fs::remove_file(run).expect("removed");
        }
    }
}

#[test]
fn job_measures_a_rejected_node_again_until_its_runs_confirm_it() {
    let Some(node) = Node::new() else {
        return skipped("job_measures_a_rejected_node_again", "this user has no name");
    };
    let stage = &node.stage;
    let [(met, _), (missed, _), (astride, _)] = stage.specs();

    let left = node.job(&met, 1);
    assert!(left.exit == 0 && left.said.contains(": ACCEPT: ") && !left.is_drained, "{}", left.said);
    assert_eq!(left.sent, "");
    let files = names(&stage.path("runs/n1"));
    assert!(files.len() == 1 && files[0].starts_with("n1-"), "{files:?}");
    assert_eq!(read(&stage.path("runs/n1").join(&files[0])).header.host, "n1");
    fs::remove_dir_all(stage.path("runs")).expect("removed");

    // Every invented run has the same figures, so that each one misses the limit.
    for id in 2.. {
        let left = node.job(&missed, id);
        if left.exit == 1 {
            assert!(id > 3 && left.said.contains(": REJECT: ") && left.is_drained, "{id}: {}", left.said);
            assert_eq!(left.sent, "");
            break;
        }
        assert!(id < 9 && left.exit == 4 && !left.is_drained, "{id}: {}", left.said);
        assert!(left.said.contains(": UNDECIDED: "), "{}", left.said);
        assert!(left.sent.starts_with("-w n1 --begin=now+30minutes "), "{}", left.sent);
        node.half_an_hour_later();
    }
    // Of a node that was resumed the earlier runs still say the same.
    node.half_an_hour_later();
    let left = node.job(&missed, 10);
    assert!(left.exit == 1 && left.is_drained, "{}", left.said);
    let left = node.job(&astride, 11);
    assert!(left.exit == 4 && !left.is_drained, "{}", left.said);
    assert_eq!(left.sent, "", "what its own run leaves open, another one does not decide");

    // Where no run can be kept, none confirms another.
    fs::remove_dir_all(stage.path("runs")).expect("removed");
    fs::write(stage.path("runs"), "").expect("written");
    let left = node.job(&missed, 12);
    assert!(left.exit == 4 && left.said.contains("UNDECIDED") && !left.is_drained, "{}", left.said);
    assert_eq!(left.sent, "");
    assert!(!names(stage.folder.path()).iter().any(|name| name.starts_with("tmp.")));
    let mode = fs::metadata(recipe("slurm/assay-drain")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "a health check is started");
}

/// All names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A job on each of two nodes. That under a quota is drained at once where its spec asks for all
/// CPUs; where its spec asks for no finding of a quota, the job sends itself again half an hour
/// later and the node is drained when its runs confirm each other. The other one's verdict is open
/// and it stays. Then ReFrame sends its test to the same Slurm.
///
/// The test does not wait for half an hour: the job that would wait is started by `scontrol`, and
/// the runs of before are copies of the node's own first one with earlier begins.
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
    let quota = "name = \"quota\"\n[findings]\nnone_of = [\"cpu-quota\"]\n";
    // No figure here has a cause that is known: whether it is low enough stays open.
    let open = "[[limit]]\nseries = \"syscall.getpid@one-cpu#latency\"\nmax = \"1 s\"\nverdict = [\"trusted_with_cause\"]\n";
    for (name, text) in [("whole", whole), ("quota", quota), ("open", &format!("{whole}{open}"))] {
        fs::write(cluster.stage.path(&format!("{name}.toml")), text).expect("written");
    }
    let begin = Instant::now();
    cluster.submit("node1", "open.toml").expect(0);
    cluster.submit("node2", "whole.toml").expect(0);
    until(|| cluster.verdict("node1").is_some() && cluster.verdict("node2").is_some()).expect("two verdicts");
    println!("two jobs at once, {:.1} s", seconds(begin));
    let verdicts = ["node1", "node2"].map(|node| cluster.verdict(node).expect("a verdict"));
    println!("{}\n{}", verdicts[0], verdicts[1]);
    assert!(verdicts[0].contains("\nexit=4\n") && verdicts[1].contains("\nexit=1\n"), "{verdicts:?}");
    let drained = |wanted: &str| {
        let begin = Instant::now();
        until(|| cluster.state("node2") == "drain").expect("node2 is drained");
        let node = cluster.says("scontrol", &["show", "node", "node2"]);
        let reason = node.lines().find(|line| line.contains("Reason=")).unwrap_or_default().trim();
        println!("drained {:.1} s after the verdict: {reason}", seconds(begin));
        assert!(reason.contains(wanted), "{reason}");
    };
    drained("Reason=assay: REJECT: whole host");
    // A job for it waits; resumed it stays so, though the verdict is there.
    cluster.submit("node2", "whole.toml").expect(0);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(cluster.says("squeue", &["-h", "-o", "%t"]).trim(), "PD");
    assert_eq!(cluster.says("scancel", &["--user=root"]), "");
    cluster.says("scontrol", &["update", "nodename=node2", "state=resume"]);
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!([cluster.state("node1"), cluster.state("node2")], ["idle", "idle"]);

    cluster.submit("node2", "quota.toml").expect(0);
    let says = |exit: &str| cluster.verdict("node2").is_some_and(|verdict| verdict.contains(exit));
    until(|| says("\nexit=4\n")).expect("not yet confirmed");
    println!("{}", cluster.verdict("node2").expect("a verdict"));
    until(|| cluster.says("squeue", &["-h", "-o", "%n %t %r"]).trim() == "node2 PD BeginTime")
        .expect("sent again for later");
    // Some health checks.
    std::thread::sleep(Duration::from_secs(6));
    assert_eq!(cluster.state("node2"), "idle");
    let own = cluster.stage.path("runs/node2");
    let first = own.join(names(&own).into_iter().min().expect("a run"));
    for half_hours in 1..=8 {
        write_earlier(&first, 1800 * half_hours, &own.join(format!("before-{half_hours}.assay.jsonl")));
    }
    let waiting = cluster.says("squeue", &["-h", "-o", "%i"]);
    let begin = Instant::now();
    let job = format!("jobid={}", waiting.trim());
    assert_eq!(cluster.says("scontrol", &["update", &job, "starttime=now"]), "");
    until(|| says("\nexit=1\n")).expect("measured again");
    println!("the waiting one, {:.1} s: {}", seconds(begin), cluster.verdict("node2").expect("a verdict"));
    drained("Reason=assay: REJECT: ");
    assert_eq!(cluster.says("squeue", &["-h"]), "", "it was confirmed: nothing more is sent");
    assert_eq!(cluster.state("node1"), "idle");

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
