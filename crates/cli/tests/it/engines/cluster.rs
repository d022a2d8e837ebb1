//! A Slurm of two nodes on this machine: its own key, sockets, ports and folders, all of it ended
//! when its guard goes.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::hosts::{Quota, end_all, free_port, group, impossible, inside};
use super::{Stage, program, recipe};
use crate::host::{Group, works};
use crate::runs::{Ended, end};

/// The nodes, and the quota of the second.
pub const NODES: [(&str, Quota); 2] = [("node1", None), ("node2", Some((150_000, 100_000)))];

pub struct Cluster {
    pub stage: Stage,
    /// munged and slurmctld.
    daemons: Vec<Child>,
    nodes: Vec<Child>,
    groups: Vec<Group>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.nodes.iter_mut().for_each(end_all);
        for daemon in self.daemons.iter_mut().rev() {
            // In order: slurmctld has a helper of its own.
            let pid = Pid::from_child(daemon);
            let _ = kill_process(pid, Signal::TERM);
            let end = Instant::now() + Duration::from_secs(20);
            while daemon.try_wait().is_ok_and(|ended| ended.is_none()) {
                if Instant::now() > end {
                    let _ = daemon.kill();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Cluster {
    /// Starts it with the recipe's health check on each node, every two seconds; or says why not.
    pub fn start(words: &str) -> Result<Cluster, String> {
        if let Some(why) = impossible() {
            return Err(why.to_string());
        }
        let all = ["munged", "slurmctld", "slurmd"]
            .iter()
            .all(|daemon| works(daemon, &["--version"]) || works(daemon, &["-V"]));
        if !all {
            return Err("munged, slurmctld or slurmd is not here".to_string());
        }
        let mut cluster =
            Cluster { stage: Stage::with(words), daemons: Vec::new(), nodes: Vec::new(), groups: Vec::new() };
        cluster.write();
        let path = |name: &str| cluster.stage.path(name).display().to_string();
        let option = |name: &str, file: &str| format!("--{name}={}", path(file));
        let munged = [
            "--foreground".to_string(),
            "--force".to_string(),
            option("key-file", "munge.key"),
            option("socket", "munge.sock"),
            option("pid-file", "munged.pid"),
            option("log-file", "munged.log"),
            option("seed-file", "munge.seed"),
        ];
        let (socket, conf) = (cluster.stage.path("munge.sock"), path("slurm.conf"));
        let munged = cluster.daemon(Command::new("munged").args(munged), "munged");
        cluster.daemons.push(munged);
        until(|| socket.exists()).ok_or("munged has no socket")?;
        let slurmctld =
            cluster.daemon(Command::new("slurmctld").args(["-D", "-i", "-f", &conf]), "slurmctld");
        cluster.daemons.push(slurmctld);
        for (name, quota) in NODES {
            let group = group(quota)?;
            let folder = cluster.stage.folder.path().to_path_buf();
            let node = inside(&folder, name, &["slurmd", "-D", "-N", name, "-f", &conf]);
            let node = cluster.daemon(&mut group.inside(&node), name);
            cluster.nodes.push(node);
            cluster.groups.push(group);
        }
        let idle =
            || cluster.says("sinfo", &["-hN", "-o", "%t"]).lines().filter(|line| *line == "idle").count();
        until(|| idle() == NODES.len()).ok_or_else(|| format!("no two idle nodes: {}", cluster.logs()))?;
        Ok(cluster)
    }

    fn write(&self) {
        let folder = self.stage.folder.path();
        let shown = folder.display();
        for name in ["state", "spool-node1", "spool-node2"] {
            fs::create_dir(folder.join(name)).expect("a folder");
        }
        let key: Vec<u8> = (0..64).map(|_| fastrand::u8(..)).collect();
        fs::write(folder.join("munge.key"), key).expect("written");
        assert!(works("chmod", &["400", &folder.join("munge.key").to_string_lossy()]));
        let nodes: String = NODES
            .map(|(name, _)| {
                format!(
                    "NodeName={name} NodeAddr=127.0.0.1 NodeHostname={name} Port={} CPUs=2 RealMemory=500\n",
                    free_port()
                )
            })
            .concat();
        let conf = format!(
            "ClusterName=assay\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={shown}/munge.sock\nStateSaveLocation={shown}/state\n\
             SlurmdSpoolDir={shown}/spool-%n\nSlurmctldPidFile={shown}/slurmctld.pid\nSlurmdPidFile={shown}/%n.pid\n\
             SlurmctldLogFile={shown}/slurmctld.log\nSlurmdLogFile={shown}/%n.log\nProctrackType=proctrack/pgid\n\
             TaskPlugin=task/affinity\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nMpiDefault=none\n\
             ReturnToService=2\nSlurmdParameters=config_overrides\nHealthCheckProgram={shown}/health\n\
             HealthCheckInterval=2\nHealthCheckNodeState=ANY\n{nodes}\
             PartitionName=all Nodes=ALL Default=YES MaxTime=30 OverSubscribe=EXCLUSIVE State=UP\n",
            free_port()
        );
        fs::write(folder.join("slurm.conf"), conf).expect("written");
        let drain =
            format!("verdicts={shown}/verdicts\nuser=root\nstate={shown}/drained\nconf={shown}/slurm.conf\n");
        fs::write(folder.join("drain.conf"), drain).expect("written");
        let health = format!(
            "#!/bin/sh\nexport ASSAY_DRAIN_CONF={shown}/drain.conf\nexec {} 2>>{shown}/drain.log\n",
            recipe("slurm/assay-drain").display()
        );
        program(&folder.join("health"), &health);
    }

    fn daemon(&self, command: &mut Command, name: &str) -> Child {
        let log = fs::File::create(self.stage.path(&format!("{name}.out"))).expect("a file");
        let other = log.try_clone().expect("a file");
        command.stdin(Stdio::null()).stdout(other).stderr(log).spawn().expect("it starts")
    }

    /// A command of Slurm's, asked of this cluster.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.stage.command(program);
        command.env("SLURM_CONF", self.stage.path("slurm.conf"));
        command
    }

    pub fn says(&self, program: &str, words: &[&str]) -> String {
        end(self.command(program).args(words)).out
    }

    /// Sends the recipe's job to a node.
    pub fn submit(&self, node: &str, spec: &str) -> Ended {
        let mut sbatch = self.command("sbatch");
        sbatch.args(["-w", node]).arg(recipe("slurm/assay.sbatch"));
        let set = [
            ("ASSAY", "bin/assay"),
            ("ASSAY_SPEC", spec),
            ("ASSAY_RESULTS", "runs"),
            ("ASSAY_VERDICTS", "verdicts"),
        ];
        for (name, file) in set {
            sbatch.env(name, self.stage.path(file));
        }
        end(&mut sbatch)
    }

    /// What stands in a node's verdict.
    pub fn verdict(&self, node: &str) -> Option<String> {
        fs::read_to_string(self.stage.path("verdicts").join(node)).ok()
    }

    pub fn state(&self, node: &str) -> String {
        self.says("sinfo", &["-hN", "-n", node, "-o", "%t"]).trim().to_string()
    }

    fn logs(&self) -> String {
        let names = ["munged.out", "slurmctld.log", "slurmctld.out", "node1.log", "node1.out", "node2.out"];
        let text = |name: &str| fs::read_to_string(self.stage.path(name)).unwrap_or_default();
        names.map(|name| format!("{name}: {}\n", text(name))).concat()
    }
}

/// Waits until it is so, for two minutes at most.
pub fn until(seen: impl Fn() -> bool) -> Option<()> {
    let end = Instant::now() + Duration::from_secs(120);
    while Instant::now() < end {
        if seen() {
            return Some(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    None
}
