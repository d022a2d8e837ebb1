//! The program with the Nexmark queries: compiled from the sources that are part of this one, and
//! kept.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::{Distribution, Java, cache, last_lines, output_of};
use crate::leftovers;
use model::fingerprint;
use sys::scratch::Scratch;

macro_rules! sources {
    ($($name:literal)+) => {
        /// Name and text of each source.
        const SOURCES: &[(&str, &str)] = &[$(
            ($name, include_str!(concat!("../../../../nexmark/src/main/java/assay/nexmark/", $name, ".java")))
        ),+];
    };
}

sources! {
    "Event" "EventRow" "Generator" "Job" "NexmarkReader" "NexmarkSource" "NexmarkTableFactory" "Pacer" "Pack" "Query"
    "Report" "Schedule"
}

/// The file that registers the table's connector with Flink.
const SERVICE: &str = "META-INF/services/org.apache.flink.table.factories.Factory";
const SERVICE_TEXT: &str = include_str!(
    "../../../../nexmark/src/main/resources/META-INF/services/org.apache.flink.table.factories.Factory"
);

/// How long compiling may take.
const COMPILE: Duration = Duration::from_secs(300);

/// The program for a Flink, compiled if it is not yet there.
pub fn program(java: &Java, flink: &Distribution) -> anyhow::Result<PathBuf> {
    let folder = cache()?;
    let texts: Vec<&str> =
        SOURCES.iter().map(|(_, text)| *text).chain([SERVICE_TEXT, &flink.version]).collect();
    let jar = folder.join(format!("nexmark-{:016x}.jar", fingerprint(&texts.join("\0"))));
    if jar.is_file() {
        return Ok(jar);
    }
    let why = || format!("the program of the Nexmark queries cannot be compiled in {}", folder.display());
    compile(java, flink, &folder, &jar).with_context(why)?;
    Ok(jar)
}

fn compile(java: &Java, flink: &Distribution, folder: &Path, jar: &Path) -> anyhow::Result<()> {
    let (compiler, packer) = (java.tool("javac")?, java.tool("jar")?);
    std::fs::create_dir_all(folder)?;
    leftovers::sweep([folder]);
    let sources: Vec<String> = SOURCES.iter().map(|(name, _)| format!("{name}.java")).collect();
    let holds: Vec<&str> = sources.iter().map(String::as_str).chain(["classes/", "nexmark.jar"]).collect();
    let work = Scratch::new(folder, &holds)?;
    let classes = work.path().join("classes");
    std::fs::create_dir_all(classes.join("META-INF/services"))?;
    std::fs::write(classes.join(SERVICE), SERVICE_TEXT)?;
    let mut command = Command::new(compiler);
    command
        .args(["--release", "11", "-nowarn", "-proc:none", "-cp", &flink.class_path(), "-d"])
        .arg(&classes);
    for (name, (_, text)) in sources.iter().zip(SOURCES) {
        let source = work.path().join(name);
        std::fs::write(&source, text)?;
        command.arg(source);
    }
    let (succeeded, output) = output_of(&mut command, COMPILE).context("javac cannot be run")?;
    ensure!(succeeded, "javac against Flink {}: {}", flink.version, last_lines(&output));
    let made = work.path().join("nexmark.jar");
    let mut command = Command::new(packer);
    command.arg("--create").arg("--file").arg(&made).arg("-C").arg(&classes).arg(".");
    let (succeeded, output) = output_of(&mut command, COMPILE).context("jar cannot be run")?;
    ensure!(succeeded, "jar: {}", last_lines(&output));
    // Another process that compiles at the same time makes the same file.
    std::fs::rename(&made, jar)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_of_the_module_is_part_of_this_program() {
        let folder = testkit::root().join("nexmark/src/main/java/assay/nexmark");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .expect("the module")
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        let known: Vec<String> = SOURCES.iter().map(|(name, _)| format!("{name}.java")).collect();
        assert_eq!(names, known);
    }
}
