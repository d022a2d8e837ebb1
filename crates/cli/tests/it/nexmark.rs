//! `assay run --only nexmark` and `assay setup flink`: what is missing or wrong is reported, and a
//! real cluster leaves nothing behind, whichever process is killed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::host::{Mount, nothing_left_running, processes_marked, skipped, unique};
use crate::runs::{Ended, Running, end, is_tidy, page_is_whole, results, start, visits_so_far};

/// A stage: a folder with fakes of all that a cluster is made of, and an environment that knows
/// nothing else.
struct Stage {
    dir: TempDir,
}

impl Stage {
    fn new() -> Stage {
        let stage = Stage { dir: tempfile::tempdir().expect("a folder") };
        fs::create_dir_all(stage.path("flink/lib")).expect("folders");
        fs::write(stage.path("flink/lib/flink-dist-2.3.0.jar"), "").expect("a file");
        fs::write(stage.path("program.jar"), "no program").expect("a file");
        fs::create_dir(stage.path("files")).expect("a folder");
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A java that says this version and then does that.
    fn java(&self, version: &str, body: &str) -> PathBuf {
        let path = self.path("java");
        let text = format!(
            "#!/bin/sh\nif [ \"$1\" = -version ]; then echo 'openjdk version \"{version}\"' >&2; exit 0; fi\n{body}\n"
        );
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        path
    }

    /// `assay run` of one short case, with these words.
    fn run(&self, words: &str) -> Command {
        let mut command = crate::assay();
        command.args("run --only nexmark.q0 --quick --budget 70s --force --new".split(' '));
        command.arg("--out").arg(self.path("out"));
        command.args(words.split_whitespace());
        command
            .env_remove("JAVA_HOME")
            .env("XDG_DATA_HOME", self.path("none"))
            .env("TMPDIR", self.path("files"));
        command
    }

    /// The same with the fakes.
    fn staged(&self, words: &str) -> Command {
        let mut command = self.run(words);
        command.arg("--java").arg(self.path("java")).arg("--flink-home").arg(self.path("flink"));
        command.arg("--nexmark-jar").arg(self.path("program.jar"));
        command
    }

    /// Nothing is left of a visit's files.
    #[track_caller]
    fn is_swept(&self) {
        let left: Vec<_> = fs::read_dir(self.path("files")).expect("a folder").flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let stage = Stage::new();
    let says = |command: &mut Command, words: &[&str]| {
        end(command).expect(3).says(words);
        assert!(!stage.path("out/report.html").exists(), "nothing was measured");
    };
    says(stage.run("").env("PATH", "/nowhere"), &["no Java in JAVA_HOME or PATH", "Install a JDK", "--java"]);
    let mut named = stage.run("");
    says(named.args(["--java", "/nowhere/java"]), &["--java names /nowhere/java, which does not exist"]);
    let java = stage.java("1.8.0_402", "exit 0");
    let mut old = stage.run("--java");
    says(old.arg(&java), &["is Java 1.8.0_402; Flink needs 11 or newer"]);
    stage.java("17.0.1", "exit 0");
    says(stage.run("--java").arg(&java), &["no Flink distribution in", "assay setup flink", "--flink-home"]);
    let mut none = stage.run("--flink-home /nowhere --java");
    says(none.arg(&java), &["--flink-home /nowhere: not a Flink distribution"]);
    let mut runtime = stage.run("--java");
    runtime.arg(&java).arg("--flink-home").arg(stage.path("flink")).env("PATH", "/nowhere");
    says(runtime.env("XDG_CACHE_HOME", stage.path("cache")), &["no javac next to", "--nexmark-jar"]);
    let mut jar = stage.staged("");
    fs::remove_file(stage.path("program.jar")).expect("it is there");
    says(&mut jar, &["--nexmark-jar", "no such file"]);
    fs::write(&java, "#!/bin/sh\necho I am no Java\n").expect("a file");
    says(stage.run("--java").arg(&java), &["is not Java", "I am no Java"]);
}

#[test]
fn options_of_nexmark_want_nexmark() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = crate::assay();
    command.args("run --only cpu.clock --flink-port 8081 --out".split(' ')).arg(dir.path());
    end(&mut command).expect(2).says(&["are for nexmark"]);
    let mut command = crate::assay();
    command.args("run --only cpu.clock --margin 30 --out".split(' ')).arg(dir.path());
    end(&mut command).expect(2).says(&["--margin are for nexmark"]);
}

#[test]
fn a_port_that_is_taken_is_said_so() {
    let stage = Stage::new();
    stage.java("17.0.1", "sleep 1000");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let ended = end(&mut stage.staged(&format!("--flink-port {port}")));
    ended.expect(3).says(&[&format!("port {port} on 127.0.0.1 cannot be used"), "--flink-port"]);
    stage.is_swept();
}

#[test]
fn a_flink_that_dies_at_its_start_is_told_by_its_last_lines() {
    let stage = Stage::new();
    stage.java("17.0.1", "echo Error: could not reserve enough space; exit 1");
    let ended = end(&mut stage.staged(""));
    let why = "ended with exit code 1. Its last lines: Error: could not reserve enough space";
    ended.expect(3).says(&["Manager ended with exit code 1", why]);
    stage.is_swept();
    page_is_whole(&stage.path("out"));
}

#[test]
fn a_flink_that_never_answers_ends_with_the_run() {
    let stage = Stage::new();
    // It ignores being asked to end, and has a child of its own.
    stage.java("17.0.1", "trap '' TERM; sleep 1000 & while :; do sleep 0.2; done");
    let mark = unique();
    for signal in [Signal::INT, Signal::KILL] {
        let mut running = start(stage.staged("").env("ASSAY_TEST", &mark));
        running.until("both processes", |_| processes_marked(&mark).len() >= 6);
        running.signal(signal);
        drop(running.child.wait());
        nothing_left_running(&mark);
        stage.is_swept();
    }
}

#[test]
fn a_full_disk_is_said_so() {
    let stage = Stage::new();
    stage.java("17.0.1", "sleep 1000");
    let mount = match Mount::tmpfs("size=8m") {
        Ok(mount) => mount,
        Err(why) => return skipped("a_full_disk_is_said_so", why),
    };
    let full = |words: &[&str]| {
        end(&mut stage.staged(&format!("--dir {}", mount.path().display()))).expect(3).says(words);
    };
    full(&["only ", "MiB are free in", "--dir"]);
    drop(mount);
    // Room at the start, and none for what Flink writes then.
    let mount = Mount::tmpfs("size=80m").expect("as before");
    stage.java("17.0.1", &format!("head -c 200000000 /dev/zero > {}/hog; exit 1", mount.path().display()));
    let on = mount.path().display().to_string();
    end(&mut stage.staged(&format!("--dir {on}"))).expect(3).says(&["disk of its folder is full", &on]);
}

/// The end of a run against a server that does this to each caller.
fn against(answer: impl Fn(&mut std::net::TcpStream) + Send + 'static) -> (Ended, String) {
    let stage = Stage::new();
    stage.java("17.0.1", "exit 1");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a caller");
            let _ = stream.read(&mut [0; 4096]);
            answer(&mut stream);
        }
    });
    let mut command = stage.run("--jobmanager");
    command.arg(&address).arg("--nexmark-jar").arg(stage.path("program.jar"));
    (end(&mut command), address)
}

#[test]
fn an_address_that_is_no_jobmanager_is_said_so() {
    let http = |stream: &mut std::net::TcpStream| {
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>");
    };
    let (ended, address) = against(http);
    ended.expect(3).says(&[&address, "is not a Flink JobManager's REST endpoint"]);
    let (ended, address) = against(|_| std::thread::sleep(Duration::from_secs(60)));
    ended.expect(3).says(&[&format!("{address} does not answer"), "REST port"]);
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let stage = Stage::new();
    let mut nobody = stage.run("--jobmanager");
    end(nobody.arg(free.to_string())).expect(3).says(&[&format!("no program listens at {free}")]);
    let mut nonsense = stage.run("--jobmanager nonsense");
    end(&mut nonsense).expect(3).says(&["write HOST:PORT"]);
}

#[test]
fn setup_says_what_it_lacks_and_leaves_alone_what_is_there() {
    let stage = Stage::new();
    let setup = |words: &str| {
        let mut command = crate::assay();
        command.args(["setup", "flink"]).args(words.split_whitespace());
        command.env("XDG_DATA_HOME", stage.path("share")).env("PATH", "/nowhere").env_remove("JAVA_HOME");
        command
    };
    end(&mut setup("")).expect(3).says(&["neither pip (python3 -m pip) nor Maven (mvn) is installed"]);
    end(&mut setup("--version x/y")).expect(2);
    let mut there = setup("--to");
    end(there.arg(stage.path("flink")))
        .expect(3)
        .says(&["Flink 2.3.0 is in", "no Java in JAVA_HOME or PATH"]);
    let bin = stage.path("bin");
    fs::create_dir(&bin).expect("a folder");
    let python = bin.join("python3");
    let broken =
        "#!/bin/sh\n[ \"$3\" = --version ] && exit 0\necho 'OSError: No space left on device' >&2\nexit 1\n";
    fs::write(&python, broken).expect("a file");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("a program");
    end(setup("").env("PATH", &bin)).expect(3).says(&["pip cannot fetch", "the disk is full", "--to"]);
    let left: Vec<_> = fs::read_dir(stage.path("share/assay")).expect("a folder").flatten().collect();
    assert!(left.is_empty(), "what was begun is taken away: {left:?}");
}

#[test]
fn a_dry_run_and_invented_samples_need_no_cluster() {
    let stage = Stage::new();
    let mut command = crate::assay();
    command
        .args("run --only nexmark --margin 30 --all --pretend 7 --new --out".split(' '))
        .arg(stage.path("out"));
    let ended = end(command.env("PATH", "/nowhere"));
    ended.sane();
    // It begins with its conclusion, in a terminal and in the page.
    let words = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let place = |what: &str| words.find(what).unwrap_or_else(|| panic!("no {what:?} in {words}"));
    assert!(place("; with 30 % kept free, ") < place("figures trusted within"), "{words}");
    assert!(words.contains(" events/s"), "{words}");
    let page = fs::read_to_string(stage.path("out/report.html")).expect("a page");
    let section = |id: &str| page.find(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"));
    let verdict = page.find("; with 30 % kept free, ").expect("the verdict");
    assert!(verdict < section("findings"));
    for chart in ["cpu", "rate", "attainment"] {
        assert!(page.contains(&format!("chart-nexmark-q0-{chart}")), "no chart {chart}");
    }
    let results = results(&stage.path("out"));
    let keys: Vec<&str> =
        results["series"].as_array().expect("series").iter().filter_map(|one| one["key"].as_str()).collect();
    for key in ["nexmark.q0@one-cpu/load=10#rate", "nexmark.q0@one-cpu/load=100#cpu"] {
        assert!(keys.contains(&key), "{keys:?}");
    }
    page_is_whole(&stage.path("out"));
}

/// A real Flink: what $ASSAY_FLINK names, what `tests/install-needs` brought, or what `assay setup
/// flink` did.
pub fn flink(test: &str) -> Option<PathBuf> {
    let brought = testkit::root().join("target/flink");
    let share = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let share = share.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")));
    let set_up = share.map(|share| share.join("assay/flink-2.3.0"));
    let named = std::env::var_os("ASSAY_FLINK").map(PathBuf::from);
    let has_lib = |home: &PathBuf| home.join("lib").is_dir() || home.join("pyflink/lib").is_dir();
    let found = [named, Some(brought), set_up].into_iter().flatten().find(has_lib);
    let has_java = Command::new("javac").arg("-version").output().is_ok_and(|output| output.status.success());
    match found {
        Some(found) if has_java => Some(found),
        Some(_) => {
            skipped(test, "no JDK (javac) in PATH");
            None
        }
        None => {
            skipped(test, "no Flink: set ASSAY_FLINK, or run tests/install-needs");
            None
        }
    }
}

/// One visit on a real cluster.
fn real(stage: &Stage, home: &Path, mark: &str) -> Command {
    let mut command = stage.run("--flink-home");
    command.arg(home).env("ASSAY_TEST", mark);
    command
}

#[test]
fn a_real_cluster_walks_all_rates_and_is_gone() {
    let test = "a_real_cluster_walks_all_rates_and_is_gone";
    let Some(home) = flink(test) else { return };
    let (stage, mark) = (Stage::new(), unique());
    let ended = end(&mut real(&stage, &home, &mark));
    nothing_left_running(&mark);
    stage.is_swept();
    if ended.code == 3 && ended.err.contains("no sample of 7 can be used") {
        return skipped(test, "others use the CPUs");
    }
    ended.sane();
    let results = results(&stage.path("out"));
    page_is_whole(&stage.path("out"));
    is_tidy(&stage.path("out"));
    let mut loads: BTreeMap<u64, BTreeMap<String, f64>> = BTreeMap::new();
    for one in results["series"].as_array().expect("series") {
        let Some((_, point)) = one["key"].as_str().and_then(|key| key.split_once("one-cpu/load=")) else {
            continue;
        };
        let (load, metric) = point.split_once('#').expect("a metric");
        if let Some(median) = one["median"].as_f64() {
            loads.entry(load.parse().expect("a number")).or_default().insert(metric.to_string(), median);
        }
    }
    assert_eq!(
        loads.keys().copied().collect::<Vec<u64>>(),
        [10, 20, 35, 50, 65, 80, 100],
        "six rates and the greatest"
    );
    let mut last = 0.0;
    for (load, metrics) in &loads {
        let Some(rate) = metrics.get("rate") else {
            assert_eq!(metrics["rejected"], 1.0, "load {load} has no window and none was rejected");
            continue;
        };
        assert!(*rate > last * 0.9 && *rate > 1000.0, "{load} %: {rate}/s after {last}/s");
        assert!(metrics["cpu"] > 0.0 && metrics["cpu"] < 102.0 && metrics["cost"] > 0.0, "{metrics:?}");
        last = *rate;
    }
    let header = crate::runs::read(&crate::runs::run_file(&stage.path("out"))).header;
    let told = header.snapshot.text("probe:flink").expect("it is told").to_string();
    assert!(told.contains("version ") && told.contains("gc Copy, MarkSweepCompact"), "{told}");
}

/// The processes of a run, by what they are.
fn process(mark: &str, what: &str) -> Option<Pid> {
    let is = |command: &str| match what {
        "session" => command.contains(" run "),
        "visit" => command.contains(" case"),
        other => command.contains(other),
    };
    processes_marked(mark)
        .iter()
        .find(|(_, command)| is(command))
        .and_then(|(pid, _)| Pid::from_raw(*pid as i32))
}

const JOBMANAGER: &str = "StandaloneSessionClusterEntrypoint";
const TASKMANAGER: &str = "TaskManagerRunner";

/// A run whose cluster is up.
fn up(stage: &Stage, home: &Path, mark: &str) -> Running {
    let mut running = start(&mut real(stage, home, mark));
    running.until("both processes of Flink", |_| {
        process(mark, JOBMANAGER).is_some() && process(mark, TASKMANAGER).is_some()
    });
    std::thread::sleep(Duration::from_secs(4));
    running
}

/// How a run ends that is interrupted when its first visit is over.
fn after_a_visit(mut running: Running, stage: &Stage) -> Ended {
    running.until("a visit", |_| visits_so_far(&stage.path("out")) >= 1);
    running.signal(Signal::INT);
    running.end()
}

#[test]
#[ignore = "four more clusters: make soak"]
fn whoever_is_killed_nothing_is_left() {
    let Some(home) = flink("whoever_is_killed_nothing_is_left") else { return };
    for victim in ["session", "visit", JOBMANAGER, TASKMANAGER] {
        let (stage, mark) = (Stage::new(), unique());
        let running = up(&stage, &home, &mark);
        kill_process(process(&mark, victim).expect("it runs"), Signal::KILL).expect("it is killed");
        match victim {
            "session" => drop(running),
            // What the killed one left in its folder is taken away by the next start.
            "visit" => {
                let told = running.end().err;
                // It is in two processes; the one that is left ends what both have started.
                assert!(["killed", "was interrupted"].iter().any(|words| told.contains(words)), "{told}");
                nothing_left_running(&mark);
                stage.java("17.0.1", "exit 1");
                end(&mut stage.staged("")).expect(3);
            }
            // What follows the failed visit would be another cluster.
            JOBMANAGER => {
                after_a_visit(running, &stage).says(&["the JobManager was ended by signal 9"]);
            }
            // Once its slots were there it is restarted, and before that fails the visit.
            _ => {
                after_a_visit(running, &stage);
            }
        }
        nothing_left_running(&mark);
        stage.is_swept();
    }
}

/// Packages into which Flink looks, for Java versions from 17 on.
const OPENED: [&str; 7] = [
    "java.lang",
    "java.lang.reflect",
    "java.net",
    "java.nio",
    "java.time",
    "java.util",
    "java.util.concurrent",
];

#[test]
#[ignore = "a Flink cluster for each query: make soak"]
fn every_row_of_every_query_is_right() {
    let Some(home) = flink("every_row_of_every_query_is_right") else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let module = testkit::root().join("nexmark/src");
    let main = module.join("main/java/assay/nexmark");
    let mut sources: Vec<PathBuf> =
        fs::read_dir(main).expect("the module").flatten().map(|entry| entry.path()).collect();
    sources.push(module.join("test/java/assay/nexmark/Answers.java"));
    let found = [home.join("lib"), home.join("pyflink/lib")].into_iter().find(|lib| lib.is_dir());
    let lib = format!("{}/*", found.expect("it was found by it").display());
    let said = |command: &mut Command| {
        let output = command.output().expect("it runs");
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(output.status.success(), "{}", text.concat());
        text
    };
    let mut compile = Command::new("javac");
    said(compile.args(["--release", "11", "-nowarn", "-cp", &lib, "-d"]).arg(dir.path()).args(sources));
    let service = "META-INF/services/org.apache.flink.table.factories.Factory";
    fs::create_dir_all(dir.path().join("META-INF/services")).expect("folders");
    fs::copy(module.join("main/resources").join(service), dir.path().join(service)).expect("a file");
    let mut answers = Command::new("java");
    answers.args(OPENED.map(|package| format!("--add-opens=java.base/{package}=ALL-UNNAMED")));
    // Its life is short: compiled quickly is better than compiled well.
    answers.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g"]);
    answers.arg(format!("-Djava.io.tmpdir={}", dir.path().display()));
    answers.arg("-cp").arg(format!("{}:{lib}", dir.path().display())).arg("assay.nexmark.Answers");
    let [told, _] = said(&mut answers);
    let right: Vec<&str> =
        told.lines().filter_map(|line| line.split_once(" right: ")).map(|(query, _)| query).collect();
    assert_eq!(right, ["q0", "q1", "q2", "q5", "q7", "q8", "q11"], "{told}");
}

#[test]
fn the_module_passes_its_own_tests() {
    let test = "the_module_passes_its_own_tests";
    let module = testkit::root().join("nexmark");
    if Command::new("mvn").arg("-v").output().is_err() {
        return skipped(test, "no Maven (mvn) in PATH");
    }
    let maven = |offline: &[&str]| {
        let mut command = Command::new("mvn");
        // Its life is short: compiled quickly is better than compiled well.
        command
            .env("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
            .args(["-q", "-B"])
            .args(offline)
            .arg("-f")
            .arg(&module);
        command.arg("test").output().expect("mvn runs")
    };
    let said = |output: &std::process::Output| {
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let offline = maven(&["-o"]);
    if offline.status.success() {
        return;
    }
    // Not all that it wants is here yet.
    let online = maven(&[]);
    let told = said(&online);
    if !online.status.success()
        && (told.contains("Could not resolve") || told.contains("could not be resolved"))
    {
        return skipped(test, "Maven cannot fetch what the module wants");
    }
    assert!(online.status.success(), "{told}");
}
