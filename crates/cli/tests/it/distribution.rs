//! What is distributed: packages are made of the program, each row of README's table of ways to
//! install is tried, the program runs from there, and is removed without a trace.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sha2::{Digest, Sha256};
use testkit::host::{fleet_tool, skipped, works, wrapped};

use crate::runs::end;

const TEST: &str = "what_the_readme_installs_runs_and_goes";

/// A command that has to go well, and what it printed.
#[track_caller]
fn done(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first words in code of each cell of the book's table of ways to install, row by row.
fn ways() -> Vec<Vec<String>> {
    let page = testkit::root().join("docs/book/installing.md");
    let page = std::fs::read_to_string(page).expect("the page on installing");
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    let code = |cell: &str| cell.split('`').nth(1).unwrap_or_default().to_string();
    rows.map(|row| row.trim_matches('|').split('|').skip(1).map(code).collect()).collect()
}

#[test]
fn what_the_book_installs_runs_and_goes() {
    if fleet_tool(TEST, "nfpm").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("assay");
    // Without its symbols it is packed in a third of the time.
    if !works("strip", &["-o", &program.to_string_lossy(), &testkit::program().to_string_lossy()]) {
        std::fs::copy(testkit::program(), &program).expect("a copy");
    }
    let packages = folder.path().join("packages");
    let mut package = Command::new(testkit::root().join("release/package"));
    package.env("LARGE", "1").env("CARGO_NET_OFFLINE", "true").env("SOURCE_DATE_EPOCH", "1700000000");
    done(package.arg(&packages).arg(&program));
    all_ways(&packages, &program, true);
}

/// The same with the packages of `make release`, whose program needs no library.
#[test]
#[ignore = "make release"]
fn what_was_released_installs_runs_and_goes() {
    let built = testkit::root().join("target/dist");
    let folder = tempfile::tempdir().expect("a folder");
    let version = env!("CARGO_PKG_VERSION");
    let archive = built.join(format!("assay-{version}-x86_64.tar.gz"));
    done(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder.path()));
    let program = folder.path().join(format!("assay-{version}-x86_64/bin/assay"));
    all_ways(&built, &program, false);
}

fn all_ways(packages: &Path, program: &Path, needs_libraries: bool) {
    done(
        Command::new("sha256sum")
            .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
            .current_dir(packages),
    );
    is_bill_of_materials(packages);
    let ways = ways();
    let tried = ways.iter().map(|way| match &way[0] {
        image if image.contains("oci-archive:") => from_image(packages, image, needs_libraries),
        install => in_a_root(packages, program, install, &way[1]),
    });
    assert_eq!(tried.count(), 6, "ways of installing.md: {ways:?}");
}

/// Installs, runs and removes in a root of its own.
fn in_a_root(packages: &Path, program: &Path, install: &str, remove: &str) {
    let tool = install.split(' ').next().unwrap_or_default();
    let unpacks = format!("tar -xzf {} -C / usr", install.rsplit(' ').next().unwrap_or_default());
    let (install, remove) = match works(tool, &["--version"]) {
        true => (install, remove),
        false if tool == "apk" => {
            skipped(TEST, "no apk here: its package is only unpacked");
            (unpacks.as_str(), "")
        }
        false => return skipped(TEST, format!("no {tool} here")),
    };
    let root = tempfile::tempdir().expect("a folder");
    let script = testkit::root().join("crates/cli/tests/it/distribution/root.sh");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh"]).arg(script).arg(root.path());
    command.arg(packages).arg(testkit::root()).arg(program).args([install, remove]);
    let output = command.output().expect("unshare is here");
    let [out, error] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    match output.status.code() {
        Some(77) => skipped(TEST, format!("no layer over /usr can be mounted here: {error}")),
        _ if error.contains("unshare: unshare failed") => skipped(TEST, &error),
        Some(0) => assert!(
            out.contains(concat!("assay ", env!("CARGO_PKG_VERSION"))) && out.contains("CPU"),
            "{install}: {out}"
        ),
        _ => panic!("{install}: {error}{out}"),
    }
}

/// A part of an image, by its digest, which has to be right.
fn blob(layout: &Path, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().and_then(|text| text.strip_prefix("sha256:"));
    let digest = digest.expect("a digest");
    let bytes = std::fs::read(layout.join("blobs/sha256").join(digest)).expect("a blob");
    let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((sum.as_str(), bytes.len() as u64), (digest, descriptor["size"].as_u64().expect("a size")));
    bytes
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

/// Starts what README has podman start, as the image says: its user without any privilege, its
/// folder, its environment, and nothing but what is in it.
fn from_image(packages: &Path, line: &str, needs_libraries: bool) {
    let archived = line.split(' ').find_map(|word| word.strip_prefix("oci-archive:")).expect("an archive");
    let words = line.rsplit(' ').next().expect("words for assay");
    let folder = tempfile::tempdir().expect("a folder");
    let [layout, root] = ["layout", "root"].map(|name| folder.path().join(name));
    for folder in [&layout, &root] {
        std::fs::create_dir(folder).expect("a folder");
    }
    done(Command::new("tar").arg("-xf").arg(packages.join(archived)).arg("-C").arg(&layout));
    let index = json(&std::fs::read(layout.join("index.json")).expect("index.json"));
    let mut manifest = json(&blob(&layout, &index["manifests"][0]));
    if manifest["manifests"].is_array() {
        manifest = json(&blob(&layout, &manifest["manifests"][0]));
    }
    let config = json(&blob(&layout, &manifest["config"]))["config"].clone();
    let layer = folder.path().join("layer");
    std::fs::write(&layer, blob(&layout, &manifest["layers"][0])).expect("a layer");
    done(Command::new("tar").args(["--no-same-owner", "-xzpf"]).arg(&layer).arg("-C").arg(&root));

    let text = |value: &Value| value.as_str().expect("a text").to_string();
    let mut runner = Command::new("bwrap");
    runner.args(["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--bind"]).arg(&root).arg("/");
    runner.args(["--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys", "--clearenv"]);
    let user = text(&config["User"]);
    let (user, group) = user.split_once(':').expect("user and group");
    assert_eq!(user, "65532", "nobody's own number");
    runner.args(["--uid", user, "--gid", group, "--chdir", &text(&config["WorkingDir"])]);
    for variable in config["Env"].as_array().expect("an environment") {
        let variable = text(variable);
        let (name, value) = variable.split_once('=').expect("NAME=VALUE");
        runner.args(["--setenv", name, value]);
    }
    if needs_libraries {
        // The program under test is not static: this host's libraries are lent to it.
        for place in ["/usr/lib", "/usr/lib64"].into_iter().filter(|place| Path::new(place).is_dir()) {
            runner.args(["--ro-bind", place, place]);
            let name = place.trim_start_matches("/usr/");
            std::os::unix::fs::symlink(place, root.join(name)).expect("a link");
        }
    }
    if !works("bwrap", &["--unshare-all", "--ro-bind", "/", "/", "true"]) {
        return skipped(TEST, "no bwrap that works here: the image was unpacked and not started");
    }
    runner.arg(text(&config["Entrypoint"][0]));
    let run = |words: &str| end(wrapped(&["env"], &runner).args(words.split(' ')));
    assert!(run(words).expect(0).out.contains("CPU"), "{line}");
    run("run --only syscall.getpid --force --budget 3s --out .").measured();
    let runs = std::fs::read_dir(root.join("runs")).expect("the folder of runs").flatten();
    assert!(runs.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().ends_with(".jsonl")));
}

/// The bill of materials names every crate that Cargo links, by the checksum of Cargo.lock, and
/// nothing else of the registry.
fn is_bill_of_materials(packages: &Path) {
    let file = packages.join(concat!("assay-", env!("CARGO_PKG_VERSION"), "-x86_64.cdx.json"));
    let bill = json(&std::fs::read(file).expect("a bill of materials"));
    assert_eq!((&bill["bomFormat"], &bill["version"]), (&"CycloneDX".into(), &1.into()));
    let components = bill["components"].as_array().expect("components");
    let lock = std::fs::read_to_string(testkit::root().join("Cargo.lock")).expect("Cargo.lock");
    for component in components {
        let field = |name: &str| component[name].as_str().expect("a text");
        if field("purl").starts_with("pkg:cargo/") {
            let digest = component["hashes"][0]["content"].as_str().expect("a digest");
            let (name, version) = (field("name"), field("version"));
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            let own =
                lock.split("[[package]]").find(|package| package.contains(&entry)).expect("in Cargo.lock");
            assert!(own.contains(digest), "{name}");
        }
    }
    let has = |name: &str| components.iter().any(|component| component["name"] == name);
    // Linked; linked by a crate that is; run at build time only; for tests only; not Rust.
    let expected =
        [("clap", true), ("bitflags", true), ("serde_derive", false), ("insta", false), ("glibc", true)];
    for (name, linked) in expected {
        assert_eq!(has(name), linked, "{name}");
    }
}

#[test]
fn every_verb_has_a_page_without_faults() {
    let folder = tempfile::tempdir().expect("a folder");
    done(crate::assay().args(["man", "--out"]).arg(folder.path()));
    let help = done(crate::assay().arg("--help"));
    let listed = help.split("Commands:\n").nth(1).expect("verbs").lines().take_while(|line| !line.is_empty());
    // Texts that go on in a further line stand farther right.
    let own = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let mut verbs: Vec<&str> = own.filter_map(|line| line.split_whitespace().next()).collect();
    verbs.retain(|verb| *verb != "help");
    assert!(verbs.len() > 20, "{verbs:?}");
    for verb in verbs {
        assert!(folder.path().join(format!("assay-{verb}.1")).is_file(), "{verb}");
    }
    let pages = || std::fs::read_dir(folder.path()).expect("pages").flatten().map(|page| page.path());
    if works("groff", &["--version"]) {
        let output =
            Command::new("groff").args(["-man", "-Kutf8", "-Tutf8", "-ww", "-z"]).args(pages()).output();
        let said = String::from_utf8_lossy(&output.expect("groff").stderr).into_owned();
        assert!(said.is_empty(), "{said}");
    }
    match works("which", &["mandoc"]) {
        true => {
            let output = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).args(pages()).output();
            let said = String::from_utf8_lossy(&output.expect("mandoc").stdout).into_owned();
            assert!(said.is_empty(), "{said}");
        }
        false => skipped("every_verb_has_a_page_without_faults", "no mandoc here"),
    }
}

#[test]
fn shells_load_their_completions() {
    let folder = tempfile::tempdir().expect("a folder");
    let asks = [
        (
            "bash",
            "--norc",
            "complete -p assay; COMP_WORDS=(assay mem) COMP_CWORD=1; _assay assay mem assay; echo ${COMPREPLY[@]}",
        ),
        (
            "zsh",
            "-f",
            "echo $_comps[assay]; whence -w _assay; print -r -- $functions[_assay__commands__assay_commands] $functions[_assay_commands]",
        ),
        ("fish", "--no-config", "complete -C 'assay mem'"),
    ];
    for (shell, option, ask) in asks {
        if !works(shell, &["--version"]) {
            skipped("shells_load_their_completions", format!("no {shell} here"));
            continue;
        }
        let file = folder.path().join(shell);
        std::fs::write(&file, done(crate::assay().args(["completions", shell]))).expect("completions");
        let before = if shell == "zsh" { "autoload -U compinit; compinit -u -D;" } else { "" };
        let script = format!("{before} source {} && {ask}", file.display());
        let told = done(Command::new(shell).args([option, "-c", &script]).env("HOME", folder.path()));
        assert!(told.contains("memmap"), "{shell}: {told}");
    }
}
