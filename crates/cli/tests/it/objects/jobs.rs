//! A job on another's Flink cluster, and a session that is killed while it runs.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::*;

/// As far as a JobManager is asked: its jobs that run, and the programs that were brought.
#[derive(Default)]
struct Cluster {
    jobs: BTreeSet<String>,
    programs: BTreeSet<String>,
}

const FOREIGN_JOB: &str = "ffffffffffffffffffffffffffffffff";
const FOREIGN_PROGRAM: &str = "1f_assay-nexmark-.jar";

/// What a JobManager answers. Its jobs run for ever and show no gauges.
fn answer(cluster: &mut Cluster, method: &str, path: &str, body: &str) -> String {
    let last = || path.rsplit('/').next().unwrap_or_default().replace("?mode=cancel", "");
    match (method, path) {
        (_, "/overview") => {
            r#"{"flink-version":"2.3.0","taskmanagers":1,"slots-total":2,"slots-available":2}"#.to_string()
        }
        (_, "/jobmanager/config") => {
            r#"[{"key":"metrics.fetcher.update-interval","value":"250"}]"#.to_string()
        }
        (_, "/taskmanagers") => r#"{"taskmanagers":[]}"#.to_string(),
        (_, "/jars") => {
            let files: Vec<String> =
                cluster.programs.iter().map(|id| format!(r#"{{"id":"{id}"}}"#)).collect();
            format!(r#"{{"files":[{}]}}"#, files.join(","))
        }
        (_, "/jars/upload") => {
            let name = body.split("filename=\"").nth(1).and_then(|rest| rest.split('"').next());
            let id = format!("2e_{}", name.expect("a name"));
            cluster.programs.insert(id.clone());
            format!(r#"{{"filename":"/tmp/{id}"}}"#)
        }
        ("POST", _) => {
            let told: Value = serde_json::from_str(body).expect("JSON");
            let job = told["jobId"].as_str().expect("a number").to_string();
            cluster.jobs.insert(job.clone());
            format!(r#"{{"jobid":"{job}"}}"#)
        }
        ("DELETE", _) => {
            assert!(cluster.programs.remove(&last()), "{path}");
            "{}".to_string()
        }
        ("PATCH", _) => {
            assert!(cluster.jobs.remove(&last()), "{path}");
            "{}".to_string()
        }
        (_, "/jobs") => {
            let job = |id: &String| format!(r#"{{"id":"{id}","status":"RUNNING"}}"#);
            let jobs: Vec<String> = cluster.jobs.iter().map(job).collect();
            format!(r#"{{"jobs":[{}]}}"#, jobs.join(","))
        }
        _ => {
            let state = if cluster.jobs.contains(&last()) { "RUNNING" } else { "CANCELED" };
            format!(r#"{{"state":"{state}","vertices":[]}}"#)
        }
    }
}

fn serve(mut stream: TcpStream, cluster: &Mutex<Cluster>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split(' ');
    let (method, path) = (words.next()?.to_string(), words.next()?.to_string());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let said = answer(&mut *cluster.lock().ok()?, &method, &path, &String::from_utf8_lossy(&body));
    let head = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}",
        said.len()
    );
    stream.write_all(format!("{head}\r\n\r\n{said}").as_bytes()).ok()
}

/// A cluster with a foreign job and a foreign program, and its address.
fn cluster() -> (Arc<Mutex<Cluster>>, String) {
    let cluster = Arc::new(Mutex::new(Cluster {
        jobs: BTreeSet::from([FOREIGN_JOB.to_string()]),
        programs: BTreeSet::from([FOREIGN_PROGRAM.to_string()]),
    }));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let shared = cluster.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = shared.clone();
            std::thread::spawn(move || serve(stream, &shared));
        }
    });
    (cluster, address)
}

#[test]
fn a_job_on_anothers_cluster_goes_with_its_session() {
    let (state, out) = (State::new(), tempfile::tempdir().expect("a folder"));
    let program = out.path().join("program.jar");
    fs::write(&program, "no program").expect("written");
    let (cluster, address) = cluster();
    let count = || {
        let cluster = cluster.lock().expect("no panic");
        (cluster.jobs.len(), cluster.programs.len())
    };
    let with_a_job = || {
        let words = format!("--quick --budget 3m --jobmanager {address} --nexmark-jar {}", program.display());
        let mut session = start(&mut run("nexmark.q0", &words, &state, &out.path().join("out")));
        session.until("a job", |_| count().0 == 2);
        session
    };
    for victims in [Victims::Session, Victims::Both] {
        let session = with_a_job();
        assert_eq!(state.objects("job").len(), 1);
        victims.kill(&session);
        session.end();
        until("neither job nor journal", || count() == (1, 1) && state.journals().is_empty());
    }
    let session = with_a_job();
    session.signal(Signal::INT);
    session.end().expect(130).sane();
    assert_eq!((count(), state.journals().len()), ((1, 1), 0));
    // What is left once all processes are killed is ended later, after a boot of this host, too.
    let session = with_a_job();
    Victims::All.kill(&session);
    session.end();
    assert_eq!((count(), state.journals().len()), ((2, 2), 1), "nobody has cleared up");
    let journal = state.journals().remove(0);
    let mut told: Value = serde_json::from_str(&fs::read_to_string(&journal).expect("text")).expect("JSON");
    told["boot_id"] = "another".into();
    fs::write(&journal, told.to_string()).expect("written");
    let said = state.restore();
    assert!(said.expect(0).out.contains("cancelled, and the program removed"), "{}", said.out);
    assert_eq!((count(), state.journals().len()), ((1, 1), 0));
    let cluster = cluster.lock().expect("no panic");
    assert!(cluster.jobs.contains(FOREIGN_JOB) && cluster.programs.contains(FOREIGN_PROGRAM));
}
