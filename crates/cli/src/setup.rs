//! `assay setup`: fetches a workload's software by the installed package managers.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::leftovers;
use super::nexmark::{Distribution, Java, in_path, last_lines, output_of, program, share};
use super::output::eprint_line;
use sys::scratch::Scratch;

/// Fetch the software that a workload needs
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    Flink(FlinkArgs),
}

/// Fetch Apache Flink for nexmark and compile the queries
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "\
Flink's libraries come by pip (python3 -m pip, the package apache-flink-libraries, about 330 MB), or by Maven if \
there is no pip (mvn, about 150 MB). They are only unpacked into a folder, where `assay run --only nexmark` finds \
them. Compiling the queries needs a JDK, version 11 or newer.
Existing files stay as they are. Remove the folder to undo everything.
Exit codes: 0 all is there, 3 an error"
)]
struct FlinkArgs {
    /// Folder for it [default: ~/.local/share/assay/flink-VERSION]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Version of Flink
    #[arg(long, value_name = "VERSION", default_value = "2.3.0", value_parser = version)]
    version: String,
}

/// Digits and dots, as it goes into names of packages and folders.
fn version(text: &str) -> Result<String, String> {
    let fine = text.starts_with(|c: char| c.is_ascii_digit())
        && text.len() < 32
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c));
    if fine { Ok(text.to_string()) } else { Err("write a version as 2.3.0".to_string()) }
}

/// How long fetching may take.
const FETCH: Duration = Duration::from_secs(3600);

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let What::Flink(args) = args.what;
    let folder = match &args.to {
        Some(folder) => folder.clone(),
        None => share()?.join(format!("flink-{}", args.version)),
    };
    let flink = match Distribution::at(&folder) {
        Some(found) => {
            eprint_line(&format!("Flink {} is in {}", found.version, folder.display()));
            found
        }
        None => fetch(&args.version, &folder)?,
    };
    let begin = Instant::now();
    let java = Java::find(None)?;
    let jar = program(&java, &flink)?;
    eprint_line(&format!(
        "the program is {}{}",
        jar.display(),
        took(begin, Duration::from_secs(1))
            .map(|took| format!(", compiled by Java {} in {took}", java.version))
            .unwrap_or_default()
    ));
    let named = match args.to {
        Some(_) => format!(" --flink-home {}", folder.display()),
        None => String::new(),
    };
    eprint_line(&format!("assay run --only nexmark{named}   uses it"));
    Ok(ExitCode::SUCCESS)
}

/// The time since then, if it is long enough to mention.
fn took(begin: Instant, least: Duration) -> Option<String> {
    (begin.elapsed() >= least).then(|| format!("{:.0} s", begin.elapsed().as_secs_f64()))
}

/// Fetches into a temporary folder and moves it into place at the end: complete or absent.
fn fetch(version: &str, folder: &Path) -> anyhow::Result<Distribution> {
    ensure!(
        !folder.exists() || folder.read_dir().is_ok_and(|mut entries| entries.next().is_none()),
        "{} holds something other than Flink: name another folder by --to, or remove it",
        folder.display()
    );
    let above = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(above).with_context(|| format!("cannot make {}", above.display()))?;
    leftovers::sweep([above]);
    let work = Scratch::new(above, HOLDS)?;
    let begin = Instant::now();
    let home = match tools() {
        (Some(python), _) => by_pip(&python, version, work.path())?,
        (None, Some(maven)) => by_maven(&maven, version, work.path())?,
        (None, None) => bail!(
            "neither pip (python3 -m pip) nor Maven (mvn) is installed: install one, or unpack a Flink \
              distribution and name it by --flink-home"
        ),
    };
    let found = Distribution::at(&home).context("the fetched files contain no Flink")?;
    ensure!(found.version == version, "the fetched Flink is {}, not {version}", found.version);
    // An empty folder makes way for it.
    std::fs::rename(&home, folder).with_context(|| format!("cannot move it to {}", folder.display()))?;
    eprint_line(&format!(
        "Flink {version} is in {}: {} MiB, fetched in {}",
        folder.display(),
        bytes_below(folder) >> 20,
        took(begin, Duration::ZERO).unwrap_or_default()
    ));
    Distribution::at(folder).context("the fetched files contain no Flink")
}

/// Contents of the folder for fetching: what pip unpacks, its own files, Maven's input, and the
/// outcome.
const HOLDS: &[&str] = &["package/", "tmp/", "pom.xml", "flink/"];

/// Python with pip, and Maven.
fn tools() -> (Option<PathBuf>, Option<PathBuf>) {
    let has_pip = |python: &PathBuf| {
        let asked = output_of(Command::new(python).args(["-m", "pip", "--version"]), Duration::from_secs(60));
        asked.is_ok_and(|(succeeded, _)| succeeded)
    };
    (in_path("python3").filter(has_pip), in_path("mvn"))
}

/// The parts of a Python package that are kept: libraries and licences.
const KEPT: [&str; 4] = ["lib", "licenses", "LICENSE", "NOTICE"];

fn by_pip(python: &Path, version: &str, work: &Path) -> anyhow::Result<PathBuf> {
    eprint_line(&format!("fetching Flink {version} by pip (about 330 MB)"));
    let package = format!("apache-flink-libraries=={version}");
    let words = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-compile",
        "--target",
    ];
    let mut command = Command::new(python);
    let (unpacked, temporary) = (work.join("package"), work.join("tmp"));
    std::fs::create_dir(&temporary).context("cannot make a folder for pip's own files")?;
    command.args(words).arg(&unpacked).arg(&package).env("TMPDIR", temporary);
    let (succeeded, output) = output_of(&mut command, FETCH).context("pip cannot be run")?;
    ensure!(
        succeeded,
        "pip cannot fetch {package}{}. Its last lines: {}",
        advice(&output),
        last_lines(&output)
    );
    let home = work.join("flink");
    std::fs::create_dir(&home).context("cannot make a folder for the libraries")?;
    for name in KEPT {
        match std::fs::rename(unpacked.join("pyflink").join(name), home.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot take {name} out of {package}"));
            }
            _ => {}
        }
    }
    Ok(home)
}

/// The artifacts that Maven fetches.
const ARTIFACTS: [&str; 6] = [
    "flink-clients",
    "flink-runtime-web",
    "flink-connector-datagen",
    "flink-table-api-java-bridge",
    "flink-table-runtime",
    "flink-table-planner-loader",
];
const LOGGING: [&str; 2] = ["log4j-slf4j-impl", "log4j-core"];
const LOGGING_VERSION: &str = "2.25.3";

fn by_maven(maven: &Path, version: &str, work: &Path) -> anyhow::Result<PathBuf> {
    eprint_line(&format!("fetching Flink {version} by Maven (about 150 MB), as there is no pip"));
    let depends = |group: &str, name: &str, version: &str| {
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        )
    };
    let all: Vec<String> = ARTIFACTS
        .iter()
        .map(|name| depends("org.apache.flink", name, version))
        .chain(LOGGING.iter().map(|name| depends("org.apache.logging.log4j", name, LOGGING_VERSION)))
        .collect();
    let pom = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>assay</groupId><artifactId>flink</artifactId><version>1</version><dependencies>{}</dependencies></project>",
        all.concat()
    );
    let file = work.join("pom.xml");
    std::fs::write(&file, pom).with_context(|| format!("cannot write {}", file.display()))?;
    let home = work.join("flink");
    let mut command = Command::new(maven);
    command.args(["-q", "-B", "-f"]).arg(&file);
    command.args([
        "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
        "-DincludeScope=runtime",
    ]);
    command.arg(format!("-DoutputDirectory={}", home.join("lib").display()));
    let (succeeded, output) = output_of(&mut command, FETCH).context("mvn cannot be run")?;
    ensure!(
        succeeded,
        "Maven cannot fetch Flink {version}{}. Its last lines: {}",
        advice(&output),
        last_lines(&output)
    );
    Ok(home)
}

/// Advice on an error of a package manager.
fn advice(output: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| output.contains(word));
    if has(&["No space left", "not enough space", "Disk quota"]) {
        ": the disk is full; free some space, or name another folder by --to"
    } else if has(&[
        "name resolution",
        "Network is unreachable",
        "NewConnectionError",
        "UnknownHost",
        "timed out",
    ]) {
        ": the registry is unreachable. Without a network, copy a distribution here and name it by \
          --flink-home"
    } else if has(&["No matching distribution", "Could not find artifact"]) {
        ": this version does not exist there"
    } else {
        ""
    }
}

/// Size of all files below a folder.
fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_below(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_can_stand_in_names() {
        assert_eq!(version("2.3.0"), Ok("2.3.0".to_string()));
        for wrong in ["", "x", "2/3", "2 3", "1;rm", "../2"] {
            assert!(version(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn complaints_have_their_advice() {
        assert!(advice("OSError: [Errno 28] No space left on device").contains("--to"));
        assert!(advice("Temporary failure in name resolution").contains("--flink-home"));
        assert!(
            advice("ERROR: No matching distribution found for x").contains("this version does not exist")
        );
        assert_eq!(advice("something else"), "");
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("mine"), "x").expect("a file");
        let error = fetch("2.3.0", folder.path()).expect_err("it is not empty").to_string();
        assert!(error.contains("something other than Flink"), "{error}");
        assert_eq!(bytes_below(folder.path()), 1);
    }
}
