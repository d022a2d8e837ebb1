//! Sixty identifying strings in every place of a run that can hold text: none of them leaves, as
//! it is, in hexadecimal digits or in base64.
//!
//! Places are found and not listed: each text and each key of a map of a rich run, that can be read
//! back with another text in it. A field that comes tomorrow is one of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Entry, Record, Snapshot};
use redact::Class;
use serde_json::Value;

use super::{bundle, lines_of, of_lines, unpacked};

const PLANTED: [&str; 60] = [
    "zurich-prod-ledger-07",
    "ledger07.corp.quuxbank.com",
    "QUUXBANK\\svc_ledger",
    "marguerite.duvalier@quuxbank.com",
    "10.47.112.9",
    "192.168.177.23",
    "fd12:3456:789a:1::c0de",
    "2001:db8:85a3::8a2e:370:7334",
    "52:54:00:9f:3a:bc",
    "0C-C4-7A-9F-3A-BC",
    "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:31:78:f2",
    "7f3b6c1e-93d4-4c1f-8f27-5f1d6b0e9a11",
    "9C2E41D7-0A5B-4F6E-B2C8-77D0C3A4E512",
    "0x5000c500a1b2c3d4",
    "eui.0025385b71b0a1c2",
    "S4EVNX0M512345K",
    "WD-WCC4N7KFPZ1Y",
    "PHLN0123456P1P0FGN",
    "CZJ3140XW9",
    "ServiceTag-7QX4KV2",
    "ASSET-QX-0099812",
    "/home/marguerite/benchmarks/zurich",
    "/srv/quuxbank/ledger/data07",
    "/mnt/nfs-quux01/export$",
    "nas-quux01:/vol/ledger_backup",
    "//filer-quux/share$",
    "/dev/mapper/vg_quuxbank-lv_ledger",
    "kubepods-burstable-podzz41.slice",
    "ledger-postgres-0.ledger-svc",
    "cri-containerd-8f2aa1b9c7d6e5f4.scope",
    "user-marguerite.slice",
    "quuxd",
    "ledger_worker",
    "postgres-ledger-writer",
    "token=ghp_x9QfL2vWmT4rZbN8",
    "AKIAQUUX7EXAMPLEZ",
    "Bearer eyJhbGciOiJIUzI1NiJ9zqx",
    "sk_live_51QuuxZz9",
    "hunter2-quuxbank!",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIQuux",
    "arn:aws:iam::quuxacct:role/ledger",
    "i-0quux9f3a1bc2d4e5",
    "projects/quux-ledger-prod/zones/zz",
    "subscription-quux-4411",
    "rack-ZH7-quux-u23",
    "row=Quuxhall-B",
    "tenant:QuuxBankAG",
    "Quux Bank AG, Bahnhofstrasse",
    "Marguerite Duvalier",
    "+41-44-quux-0199",
    "ledger-switch-te1/0/quux",
    "bondquux0",
    "vethq7x9zz1",
    "br-quuxledger",
    "QuuxLedgerDB",
    "jdbc:postgresql://ledgerhost/quux",
    "quux_ledger.service",
    "C02QUUXXMD6T",
    "Ünïquux-Straße",
    "量子quux主机",
];

/// Parts of them that no text of ours has.
const PARTS: [&str; 8] = ["quux", "ledger", "marguerite", "duvalier", "zurich", "bahnhof", "hunter2", "svc_"];

/// Puts texts into a line wherever it can still be read and says them.
struct Planter {
    next: usize,
    places: usize,
}

impl Planter {
    fn secret(&mut self) -> &'static str {
        self.next += 1;
        PLANTED[self.next % PLANTED.len()]
    }

    /// Whether a line with this in it is read, and says it.
    fn holds(line: &Value, secret: &str) -> bool {
        let quoted = serde_json::to_string(secret).expect("JSON");
        let quoted = quoted.trim_matches('"');
        serde_json::from_value::<Record>(line.clone())
            .ok()
            .and_then(|record| serde_json::to_string(&record).ok())
            .is_some_and(|text| text.contains(quoted))
    }

    fn plant(&mut self, line: &mut Value) {
        for pointer in texts(line, String::new()) {
            let text = line.pointer(&pointer).and_then(Value::as_str).unwrap_or_default().to_string();
            let secret = self.secret();
            // Alone, and beside what stands there.
            for planted in [format!("{text} {secret}"), secret.to_string()].iter().skip(self.next % 2) {
                let mut changed = line.clone();
                *changed.pointer_mut(&pointer).expect("it is there") = Value::String(planted.clone());
                if Planter::holds(&changed, secret) {
                    *line = changed;
                    self.places += 1;
                    break;
                }
            }
        }
        for pointer in objects(line, String::new()) {
            let secret = self.secret();
            let mut changed = line.clone();
            let Some(Value::Object(fields)) = changed.pointer_mut(&pointer) else { continue };
            let value = fields.values().next().cloned().unwrap_or(Value::String("1".into()));
            fields.insert(secret.to_string(), value);
            if Planter::holds(&changed, secret) {
                *line = changed;
                self.places += 1;
            }
        }
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Where texts stand in a line.
fn texts(value: &Value, path: String) -> Vec<String> {
    match value {
        Value::String(_) => vec![path],
        Value::Array(all) => {
            all.iter().enumerate().flat_map(|(at, inner)| texts(inner, format!("{path}/{at}"))).collect()
        }
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, inner)| texts(inner, format!("{path}/{}", escaped(name))))
            .collect(),
        _ => Vec::new(),
    }
}

fn objects(value: &Value, path: String) -> Vec<String> {
    let inner = match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, inner)| objects(inner, format!("{path}/{}", escaped(name))))
            .collect(),
        Value::Array(all) => {
            all.iter().enumerate().flat_map(|(at, inner)| objects(inner, format!("{path}/{at}"))).collect()
        }
        _ => Vec::new(),
    };
    if value.is_object() { [vec![path], inner].concat() } else { inner }
}

/// A run of everything, small: some cases, visits and titles of each kind.
fn rich() -> Vec<Value> {
    let mut lines = lines_of("quick.assay.jsonl.gz");
    let sweep = lines_of("sweep.assay.jsonl.gz");
    let header = &mut lines[0]["header"];
    let shorten = |list: &mut Value, most: usize| list.as_array_mut().expect("a list").truncate(most);
    shorten(&mut header["plan"], 6);
    shorten(&mut header["catalogue"], 3);
    header["sweep"] = sweep[0]["header"]["sweep"].clone();
    header["labels"] = serde_json::json!({ "rack": "r7", "row": "b" });
    header["plan"][0]["unmet"] = "no disk here".into();
    header["plan"][1]["case"]["inputs"] = serde_json::json!({
        "dir": "/x", "to": "y:5201", "jar": "/j", "java": "/k", "home": "/h", "jobmanager": "z",
        "words": "[\"a\"]", "rival": "[\"b\"]", "points": "A-a,B-b", "elsewhere": "s",
    });
    header["plan"][1]["case"]["params"] = serde_json::json!({ "command": "x-01234567" });
    header["clock"]["why"] = "slow".into();
    let kind = |line: &Value| line.as_object().and_then(|line| line.keys().next().cloned());
    let mut kept: Vec<Value> = Vec::new();
    for line in lines.into_iter().chain(sweep.into_iter().skip(1)) {
        let same = kept.iter().filter(|own| kind(own) == kind(&line)).count();
        if same < 2 {
            kept.push(line);
        }
    }
    for line in &mut kept {
        if let Some(visit) = line.get_mut("visit") {
            visit["reason"] = serde_json::json!({ "kind": "failed", "why": "it ended" });
            visit["process"]["notes"] = serde_json::json!(["a note", "another"]);
            visit["process"]["variant"] = "avx2".into();
            visit["process"]["moves"] =
                serde_json::json!({ "taking": { "a": 1.0 }, "looking": { "a": 2.0 } });
            visit["conditions"]["neighbours"] =
                serde_json::json!([{ "name": "n", "pid": 4242, "cpus": 1.0, "policy": "p" }]);
        }
        if let Some(summary) = line.get_mut("summary") {
            summary["series"].as_array_mut().expect("a list").truncate(2);
            summary["labels"] = serde_json::json!({ "rack": "r7" });
        }
    }
    kept.push(serde_json::json!({ "event": { "at_ms": 1.0, "kind": "gate", "text": "waited" } }));
    kept.push(serde_json::json!({ "time_line": {
        "subject": "clock", "name": "cpu0", "unit": "GHz", "at_ms": [], "value": [], "missing": "no counter"
    } }));
    kept
}

/// Plants into each file of a snapshot, and into each name that is not the kernel's.
fn plant_snapshot(snapshot: &mut Snapshot, planter: &mut Planter) {
    let mut planted = Snapshot::default();
    for (path, entry) in &snapshot.entries {
        let class = redact::class_of(path);
        // What a maker says stays.
        let stays = matches!(class, Some(Class::Hardware | Class::Tables));
        let entry = match entry {
            Entry::Text(text) if !stays => {
                planter.places += 1;
                let secret = planter.secret();
                Entry::Text(format!("{text} {secret}\n{secret}\n{secret}: {secret}\n"))
            }
            Entry::Link(target) => Entry::Link(format!("{target}/{}", planter.secret().replace('/', "_"))),
            other => other.clone(),
        };
        planted.entries.insert(path.clone(), entry);
    }
    for folder in
        ["/sys/class/net/{}/mtu", "/sys/block/{}/size", "/sys/fs/cgroup/{}/cpu.max", "/etc/{}", "/proc/{}"]
    {
        for secret in PLANTED {
            planter.places += 1;
            let path = folder.replace("{}", &secret.replace('/', "_"));
            planted.entries.insert(path, Entry::Text(format!("1 {secret}\n")));
        }
    }
    for probe in ["probe:disk", "probe:network", "probe:directory", "probe:archive", "probe:tomorrow"] {
        let lines = PLANTED.map(|secret| format!("{secret} {secret}\nmount {secret}\nfilesystem {secret}\n"));
        planted.entries.insert(probe.to_string(), Entry::Text(lines.concat()));
        planter.places += PLANTED.len();
    }
    *snapshot = planted;
}

/// Forms in which a text may hide.
fn forms(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_lowercase()];
    for text in [secret.to_string(), secret.to_lowercase(), secret.to_uppercase()] {
        all.push(text.bytes().map(|byte| format!("{byte:02x}")).collect());
    }
    all
}

#[test]
fn sixty_planted_strings_appear_nowhere() {
    let mut planter = Planter { next: 0, places: 0 };
    let mut lines = rich();
    let mut snapshot: Snapshot =
        serde_json::from_value(lines[0]["header"]["snapshot"].take()).expect("a snapshot");
    lines[0]["header"]["snapshot"] = serde_json::json!({});
    lines.iter_mut().for_each(|line| planter.plant(line));
    plant_snapshot(&mut snapshot, &mut planter);
    lines[0]["header"]["snapshot"] = serde_json::to_value(&snapshot).expect("JSON");
    assert!(planter.places > 600, "{} places", planter.places);
    lines.push(serde_json::json!({ "visit": PLANTED.join(" ") }));
    let (folder, file) = of_lines(&lines);
    let text = std::fs::read_to_string(&file).expect("written");
    for secret in PLANTED {
        let quoted = serde_json::to_string(secret).expect("JSON");
        assert!(text.matches(quoted.trim_matches('"')).count() > 5, "{secret} was hardly planted");
    }

    let (out, ended) = bundle(&[&file], folder.path());
    assert_eq!(ended.code, 0, "{}", ended.err.chars().take(4000).collect::<String>());
    for (name, bytes) in unpacked(&out) {
        let exact = String::from_utf8_lossy(&bytes).into_owned();
        let text = exact.to_lowercase();
        for secret in PLANTED.iter().chain(&PARTS) {
            for form in forms(secret) {
                let at = text.find(&form);
                let around = at.map(|at| text.get(at.saturating_sub(60)..at + 60).unwrap_or("…").to_string());
                assert!(
                    at.is_none() && !name.to_lowercase().contains(&form),
                    "{secret} in {name}: {around:?}"
                );
            }
            for shift in 0..3 {
                let padded = [&b"\0\0"[..shift], secret.as_bytes()].concat();
                let code = STANDARD.encode(&padded);
                let code = &code[(shift * 8).div_ceil(6)..padded.len() * 8 / 6];
                assert!(!exact.contains(code), "{secret} in base64 in {name}");
            }
        }
    }
}
