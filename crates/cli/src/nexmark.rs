//! Finds and checks Java, Flink and the program of the Nexmark queries.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::fs::Access;

use bench::{Flink, JobManager, On};
use model::units;
use sys::process;

mod program;

pub use program::program;

/// Subject of these options in help.
pub const FLINK: &str = "Flink (nexmark)";

#[derive(clap::Args, Debug, Default)]
#[command(next_help_heading = FLINK)]
pub struct FlinkArgs {
    /// Folder of Flink [default: that of `assay setup flink`]
    #[arg(long, value_name = "DIR")]
    pub flink_home: Option<PathBuf>,
    /// Java 11 or newer [default: from JAVA_HOME, else PATH]
    #[arg(long, value_name = "FILE")]
    pub java: Option<PathBuf>,
    /// REST address of a running JobManager to use
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["flink_home", "flink_port"])]
    pub jobmanager: Option<String>,
    /// Compiled queries (jar) [default: compiled once and kept]
    #[arg(long, value_name = "FILE")]
    pub nexmark_jar: Option<PathBuf>,
    /// REST port of the cluster to start [default: any free one]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub flink_port: Option<u16>,
}

/// The oldest Java that this Flink and the program run on.
const MIN_JAVA: u32 = 11;
/// Time limit of `java -version`.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// What was found, with lines of name and value for the run's header.
pub struct FlinkSetup {
    pub flink: Flink,
    pub description: String,
}

impl FlinkArgs {
    /// Whether any of them is given.
    pub fn any(&self) -> bool {
        self.flink_home.is_some()
            || self.java.is_some()
            || self.jobmanager.is_some()
            || self.nexmark_jar.is_some()
            || self.flink_port.is_some()
    }

    /// Everything a job needs; an error says what is missing and what to do.
    pub fn find(&self) -> anyhow::Result<FlinkSetup> {
        match &self.jobmanager {
            Some(address) => self.running(address),
            None => self.own(),
        }
    }

    fn own(&self) -> anyhow::Result<FlinkSetup> {
        let java = Java::find(self.java.as_deref())?;
        let distribution = Distribution::find(self.flink_home.as_deref())?;
        let jar = self.jar(Some(&java), Some(&distribution))?;
        let description = format!(
            "version {}\njava {}\ngc Copy, MarkSweepCompact\ncluster started for each visit\n",
            distribution.version, java.version
        );
        let on = On::Own { java: java.path, home: distribution.home, port: self.flink_port };
        Ok(FlinkSetup { flink: Flink { jar, on }, description })
    }

    fn running(&self, address: &str) -> anyhow::Result<FlinkSetup> {
        let address = address.trim_start_matches("http://").trim_end_matches('/');
        let port = address
            .rsplit_once(':')
            .and_then(|(host, port)| port.parse::<u16>().ok().filter(|port| *port > 0 && !host.is_empty()));
        ensure!(port.is_some(), "--jobmanager {address}: write HOST:PORT, such as localhost:8081");
        let jobmanager = JobManager::at(address);
        let overview = jobmanager.overview().context("--jobmanager")?;
        ensure!(
            overview.free_slots > 0,
            "the cluster at {address} has no free slot ({} TaskManagers, {} slots): cancel a job or add a \
              TaskManager",
            overview.taskmanagers,
            overview.slots
        );
        let settings = jobmanager.configuration().context("--jobmanager")?;
        let apart_s = settings
            .iter()
            .find(|(key, _)| key == "metrics.fetcher.update-interval")
            .map_or(Some(METRICS_APART_S), |(_, value)| seconds(value))
            .context("cannot parse the cluster's metrics.fetcher.update-interval")?;
        let jar = match &self.nexmark_jar {
            Some(_) => self.jar(None, None)?,
            // A host without Java may get the program from another one.
            None => {
                let java = Java::find(self.java.as_deref());
                let distribution = Distribution::find(None);
                let (java, distribution) = java.and_then(|java| Ok((java, distribution?))).context(
                    "compiling the queries needs a local Flink; --nexmark-jar names a compiled program",
                )?;
                self.jar(Some(&java), Some(&distribution))?
            }
        };
        let mut description = format!(
            "version {}\ngc {}\ncluster running, {} TaskManagers, {} slots, {} free\n",
            overview.version,
            jobmanager.collectors().unwrap_or_default().join(", "),
            overview.taskmanagers,
            overview.slots,
            overview.free_slots
        );
        let relevant = settings.iter().filter(|(key, _)| is_relevant(key));
        relevant.for_each(|(key, value)| {
            let value: String = value.chars().filter(|c| !c.is_control()).take(400).collect();
            description.push_str(&format!("{} {value}\n", key.replace(' ', "_")));
        });
        let on = On::Running { address: address.to_string(), slots: overview.free_slots, apart_s };
        Ok(FlinkSetup { flink: Flink { jar, on }, description })
    }

    fn jar(&self, java: Option<&Java>, distribution: Option<&Distribution>) -> anyhow::Result<PathBuf> {
        if let Some(jar) = &self.nexmark_jar {
            ensure!(jar.is_file(), "--nexmark-jar {}: no such file", jar.display());
            return absolute(jar);
        }
        let java = java.context("no Java is known")?;
        program(java, distribution.context("no Flink is known")?)
    }
}

/// How far apart a cluster's metrics are by itself, s.
const METRICS_APART_S: f64 = 10.0;

/// A duration of Flink's configuration: `250`, `250 ms`, `10 s`, `10s`, `1 min`.
fn seconds(text: &str) -> Option<f64> {
    let (number, word) = units::split(text)?;
    let unit = match word {
        "" | "ms" | "milli" | "millis" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        _ => return None,
    };
    Some(number * unit).filter(|seconds| *seconds > 0.0 && *seconds <= 600.0)
}

/// Settings that affect a job's figures, without names of hosts or folders and without secrets.
fn is_relevant(key: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "taskmanager.memory.",
        "taskmanager.numberOfTaskSlots",
        "taskmanager.cpu",
        "env.java.opts",
        "execution.",
        "pipeline.",
        "table.",
        "state.backend",
        "parallelism.",
    ];
    const NOT: [&str; 5] = ["dir", "path", "password", "secret", "token"];
    BEGINNINGS.iter().any(|begin| key.starts_with(begin)) && !NOT.iter().any(|word| key.contains(word))
}

/// A Java with its version.
pub struct Java {
    pub path: PathBuf,
    pub version: String,
}

impl Java {
    pub fn find(wanted: Option<&Path>) -> anyhow::Result<Java> {
        let home = variable("JAVA_HOME").map(|home| home.join("bin/java"));
        let (path, from) = match (wanted, home) {
            (Some(file), _) => (file.to_path_buf(), "--java"),
            (None, Some(file)) => (file, "JAVA_HOME"),
            (None, None) => {
                let found = in_path("java").context(
                    "no Java in JAVA_HOME or PATH. Install a JDK, version 11 or newer \
                      (openjdk-17-jdk-headless on Debian), or name a java by --java",
                )?;
                (found, "PATH")
            }
        };
        let shown = path.display();
        ensure!(path.is_file(), "{from} names {shown}, which does not exist: give a java program");
        ensure!(may_run(&path), "{from} names {shown}, which this user may not execute");
        let (succeeded, output) = output_of(Command::new(&path).arg("-version"), ANSWER_LIMIT)
            .with_context(|| format!("{from} names {shown}, which does not print its version"))?;
        let version = version_in(&output).filter(|_| succeeded).with_context(|| {
            let line = output.lines().next().unwrap_or("").chars().take(120).collect::<String>();
            format!("{from} names {shown}, which is not Java: `-version` prints {line:?}")
        })?;
        ensure!(
            major(&version) >= Some(MIN_JAVA),
            "{from} names {shown}, which is Java {version}; Flink needs {MIN_JAVA} or newer: install \
              one, or name it by --java"
        );
        Ok(Java { path: absolute(&path)?, version })
    }

    /// A tool of its JDK, next to it or in PATH.
    pub fn tool(&self, name: &str) -> anyhow::Result<PathBuf> {
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let beside = [&real, &self.path].into_iter().filter_map(|java| Some(java.parent()?.join(name)));
        let found = beside.into_iter().find(|tool| tool.is_file()).or_else(|| in_path(name));
        found.with_context(|| {
            format!(
                "no {name} next to {} or in PATH: this Java has no compiler. Install a JDK \
                  (openjdk-17-jdk-headless on Debian), or name a compiled program by --nexmark-jar",
                self.path.display()
            )
        })
    }
}

/// `17.0.15` of `openjdk version "17.0.15" 2025-04-15`.
fn version_in(output: &str) -> Option<String> {
    let (_, rest) = output.split_once("version \"")?;
    let (version, _) = rest.split_once('"')?;
    major(version).map(|_| version.to_string())
}

/// 8 of `1.8.0_402`, 17 of `17.0.15`, 21 of `21-ea`.
fn major(version: &str) -> Option<u32> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).filter_map(|text| text.parse().ok());
    match numbers.next()? {
        1 => numbers.next(),
        major => Some(major),
    }
}

/// An unpacked Flink: all that is used of it is its folder of libraries.
#[derive(Debug)]
pub struct Distribution {
    pub home: PathBuf,
    pub version: String,
}

impl Distribution {
    pub fn find(wanted: Option<&Path>) -> anyhow::Result<Distribution> {
        if let Some(folder) = wanted {
            return Distribution::at(folder).with_context(|| {
                format!(
                    "--flink-home {}: not a Flink distribution (lib/flink-dist-VERSION.jar is missing)",
                    folder.display()
                )
            });
        }
        let share = share()?;
        let folders = std::fs::read_dir(&share).into_iter().flatten().flatten().map(|entry| entry.path());
        let own = folders.filter(|path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("flink-"))
        });
        let mut found: Vec<Distribution> = own.filter_map(|path| Distribution::at(&path)).collect();
        found.sort_by_key(|found| numbers(&found.version));
        found.pop().with_context(|| {
            format!(
                "no Flink distribution in {}: run `assay setup flink`, or name a folder by --flink-home",
                share.display()
            )
        })
    }

    /// In a folder, or in that of a Python package.
    pub fn at(folder: &Path) -> Option<Distribution> {
        [folder.to_path_buf(), folder.join("pyflink")].into_iter().find_map(|home| {
            let files = std::fs::read_dir(home.join("lib")).into_iter().flatten().flatten();
            let version = |name: &str| {
                let rest =
                    name.strip_prefix("flink-dist-").or_else(|| name.strip_prefix("flink-runtime-"))?;
                let version = rest.strip_suffix(".jar")?;
                // Scala's version may come first.
                let version =
                    version.strip_prefix("2.12-").or(version.strip_prefix("2.11-")).unwrap_or(version);
                version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_string())
            };
            let mut names = files.filter_map(|entry| entry.file_name().into_string().ok());
            let version = names.find_map(|name| version(&name))?;
            Some(Distribution { home: absolute(&home).ok()?, version })
        })
    }

    /// Its libraries, as a class path.
    pub fn class_path(&self) -> String {
        format!("{}/*", self.home.join("lib").display())
    }
}

fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|text| text.parse().ok()).collect()
}

/// The folder of `assay setup`.
pub fn share() -> anyhow::Result<PathBuf> {
    below("XDG_DATA_HOME", ".local/share")
}

/// The cache folder.
pub fn cache() -> anyhow::Result<PathBuf> {
    below("XDG_CACHE_HOME", ".cache")
}

fn below(name: &str, in_home: &str) -> anyhow::Result<PathBuf> {
    let folder = variable(name).or_else(|| Some(variable("HOME")?.join(in_home)));
    Ok(folder.with_context(|| format!("neither {name} nor HOME is set to a folder"))?.join("assay"))
}

/// A folder or file that the environment names.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A program, found as a shell does.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file() && may_run(path))
}

fn may_run(path: &Path) -> bool {
    rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is not a path", path.display()))
}

/// Whether a program succeeded, and its output on both streams; killed after `limit`.
pub fn output_of(command: &mut Command, limit: Duration) -> anyhow::Result<(bool, String)> {
    let memory = rustix::fs::memfd_create(c"output", rustix::fs::MemfdFlags::CLOEXEC);
    let mut file = std::fs::File::from(memory.context("cannot keep the output of a program")?);
    let (out, err) = (file.try_clone()?, file.try_clone()?);
    process::kill_with_parent(command);
    let mut child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn()?;
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            bail!("no end after {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file)?;
    std::io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok((status.success(), String::from_utf8_lossy(&bytes).into_owned()))
}

/// The last lines of a program's output, as one line.
pub fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join(" / ").chars().take(800).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_java_says_them() {
        let version = |output: &str| version_in(output).and_then(|version| major(&version));
        assert_eq!(version("openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime\n"), Some(17));
        assert_eq!(version("java version \"1.8.0_402\"\n"), Some(8));
        assert_eq!(version("openjdk version \"21-ea\"\n"), Some(21));
        assert_eq!((version("bash: no"), version("version \"x\"")), (None, None));
    }

    #[test]
    fn durations_of_a_cluster_are_understood() {
        assert_eq!((seconds("250"), seconds("10 s"), seconds("10s")), (Some(0.25), Some(10.0), Some(10.0)));
        assert_eq!(
            (seconds("1 min"), seconds("0"), seconds("soon"), seconds("")),
            (Some(60.0), None, None, None)
        );
    }

    #[test]
    fn what_is_told_of_a_configuration_holds_no_secret_and_no_place() {
        assert!(is_relevant("taskmanager.memory.process.size") && is_relevant("execution.runtime-mode"));
        for key in ["state.backend.dir", "security.ssl.rest.key-password", "table.x.secret", "rest.port"] {
            assert!(!is_relevant(key), "{key}");
        }
    }

    #[test]
    fn a_distribution_is_known_by_its_library() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Distribution::at(folder.path()).is_none());
        std::fs::create_dir_all(folder.path().join("pyflink/lib")).expect("folders");
        std::fs::write(folder.path().join("pyflink/lib/flink-dist-2.3.0.jar"), "").expect("a file");
        let found = Distribution::at(folder.path()).expect("one");
        assert_eq!(found.version, "2.3.0");
        assert!(found.class_path().ends_with("pyflink/lib/*"));
        let error = Distribution::find(Some(&folder.path().join("none"))).expect_err("none is there");
        assert!(error.to_string().contains("flink-dist-VERSION.jar"), "{error}");
        assert!(numbers("1.20.5") < numbers("2.3.0") && numbers("2.9.0") < numbers("2.10.0"));
    }
}
