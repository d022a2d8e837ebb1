//! Hosts of a fleet on this machine: namespaces, each with a name, a boot and an sshd of its own.
//!
//! What others do on this host meanwhile is hidden from them: /proc/stat stands still in them, and
//! there is no pressure. So no run is rejected for it, and each says that it could not look.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::host::{Group, is_root, works};

/// Quota and period of a control group, in microseconds.
pub type Quota = Option<(u64, u64)>;

/// A free port of this host.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Why there can be no such hosts here.
pub fn impossible() -> Option<&'static str> {
    let namespaces = ["-u", "-m", "-p", "-f", "mount", "-t", "tmpfs", "none", "/run"];
    match () {
        () if !is_root() => Some("namespaces need root"),
        () if !works("unshare", &namespaces) => Some("namespaces are refused"),
        () => None,
    }
}

/// A group whose tasks come before those of others on this host, with a quota or without.
pub fn group(quota: Quota) -> Result<Group, String> {
    let group = Group::new("cpu", &[("cpu.shares", &262_144)])?;
    if let Some((quota, period)) = quota {
        group.set("cpu.cfs_period_us", period)?;
        group.set("cpu.cfs_quota_us", quota)?;
    }
    Ok(group)
}

/// A command in namespaces of its own: the host's name and boot, and a /proc that shows no
/// processes but its own. All in it ends with it.
pub fn inside(folder: &Path, name: &str, command: &[&str]) -> Command {
    let file = |kind: &str, text: &str| {
        let path = folder.join(format!("{name}.{kind}"));
        fs::write(&path, text).expect("written");
        path
    };
    let boot = format!("{:08x}-0000-4000-8000-{:012x}", fastrand::u32(..), fastrand::u64(..1 << 48));
    let boot = file("boot", &format!("{boot}\n"));
    let stat = file("stat", &fs::read_to_string("/proc/stat").expect("/proc/stat"));
    let set_up = "set -e; hostname \"$1\"; mount --bind \"$2\" /proc/sys/kernel/random/boot_id; \
                  mount --bind \"$3\" /proc/stat; [ ! -d /proc/pressure ] || mount -t tmpfs none /proc/pressure; \
                  mount -t tmpfs none /run; mkdir -m 755 /run/sshd; shift 3; exec \"$@\"";
    let mut outer = Command::new("unshare");
    outer.args([
        "--uts",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        set_up,
        "sh",
        name,
    ]);
    outer.arg(boot).arg(stat).args(command);
    outer
}

/// Ends all in the namespaces of such a command, by their first process: `unshare` ends with it.
pub fn end_all(unshare: &mut Child) {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", unshare.id()));
    let children = children.unwrap_or_default();
    match children.split_whitespace().find_map(|child| Pid::from_raw(child.parse().ok()?)) {
        Some(first) => _ = kill_process(first, Signal::KILL),
        None => _ = unshare.kill(),
    }
    let _ = unshare.wait();
}

/// A host that ssh reaches.
pub struct Host {
    pub name: String,
    pub port: u16,
    sshd: Child,
    _group: Group,
}

impl Drop for Host {
    fn drop(&mut self) {
        end_all(&mut self.sshd);
    }
}

/// Keys of a fleet, and what its hosts write.
pub struct Keys {
    folder: PathBuf,
}

impl Keys {
    pub fn new(folder: &Path) -> Keys {
        for name in ["user", "host"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(folder.join(name));
            assert!(keygen.status().expect("ssh-keygen runs").success());
        }
        Keys { folder: folder.to_path_buf() }
    }

    pub fn host(&self, name: &str, quota: Quota) -> Result<Host, String> {
        let port = free_port();
        let shown = self.folder.display();
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {shown}/host\nAuthorizedKeysFile {shown}/user.pub\n\
             PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
             Subsystem sftp internal-sftp\n"
        );
        let config = self.folder.join(format!("{name}.sshd"));
        fs::write(&config, text).expect("written");
        let group = group(quota)?;
        let config = config.to_string_lossy();
        let command = inside(&self.folder, name, &["/usr/sbin/sshd", "-D", "-e", "-f", &config]);
        let log = fs::File::create(self.folder.join(format!("{name}.log"))).expect("a file");
        let mut command = group.inside(&command);
        let sshd = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("sh runs");
        let host = Host { name: name.to_string(), port, sshd, _group: group };
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > end {
                let log = fs::read_to_string(self.folder.join(format!("{name}.log"))).unwrap_or_default();
                return Err(format!("{name} has no sshd: {log}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(host)
    }

    /// The inventory of these hosts, on which there is no Python, and what ssh needs to know.
    pub fn inventory(&self, hosts: &[Host], slowed: &str) -> String {
        let shown = self.folder.display();
        let public = fs::read_to_string(self.folder.join("host.pub")).expect("a key");
        let known: String = hosts.iter().map(|host| format!("[127.0.0.1]:{} {public}", host.port)).collect();
        fs::write(self.folder.join("known_hosts"), known).expect("written");
        let line = |host: &Host| {
            let rack = if host.name == slowed { "r8" } else { "r7" };
            format!("{} ansible_port={} assay_labels='{{\"rack\": \"{rack}\"}}'\n", host.name, host.port)
        };
        let lines: String = hosts.iter().map(line).collect();
        format!(
            "{lines}\n[all:vars]\nansible_host=127.0.0.1\nansible_user=root\nansible_python_interpreter=/nonexistent\n\
             ansible_ssh_private_key_file={shown}/user\n\
             ansible_ssh_common_args='-F none -o UserKnownHostsFile={shown}/known_hosts -o GlobalKnownHostsFile=none'\n"
        )
    }
}
