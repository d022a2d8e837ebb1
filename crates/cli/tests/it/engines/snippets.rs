//! The short recipes: MAAS, GitLab, Jenkins, NHC. Their lines are taken from the files and run.

use std::fs;

use super::{Stage, program, recipe, yaml};
use crate::runs::{end, run_file, run_files, write_earlier};

/// Runs a pipeline's lines against each spec: the last decides, and the report of tests is there
/// whatever it says.
#[track_caller]
fn a_pipeline_ends_as_its_check_does(lines: &[String]) {
    let stage = Stage::pretending();
    for (spec, code) in stage.specs() {
        fs::copy(&spec, stage.path("assay.toml")).expect("copied");
        let ended = end(stage.command("sh").args(["-e", "-c", &lines.join("\n")]));
        ended.expect(code);
        let xml = fs::read_to_string(stage.path("assay.xml")).expect("a report of tests");
        assert_eq!(xml.contains("<failure"), code == 1, "{xml}");
        assert_eq!(xml.contains("<error"), code == 4, "{xml}");
        fs::remove_file(stage.path("assay.xml")).expect("removed");
        assert!(!run_files(&stage.path("runs")).is_empty());
        fs::remove_dir_all(stage.path("runs")).expect("removed");
    }
}

#[test]
fn gitlab_job_ends_as_its_check_does() {
    let text = fs::read_to_string(recipe("gitlab/assay.gitlab-ci.yml")).expect("the recipe");
    let Some(job) = yaml("gitlab_job_ends_as_its_check_does", &text) else { return };
    let job = &job["assay"];
    assert_eq!(job["artifacts"]["reports"]["junit"], "assay.xml", "{job}");
    assert_eq!(job["artifacts"]["when"], "always", "{job}");
    assert_eq!(job["allow_failure"]["exit_codes"][0], 4, "{job}");
    let lines = job["script"].as_array().expect("lines").iter();
    let lines: Vec<String> = lines.map(|line| line.as_str().expect("text").to_string()).collect();
    a_pipeline_ends_as_its_check_does(&lines);
}

#[test]
fn jenkins_pipeline_ends_as_its_check_does() {
    let text = fs::read_to_string(recipe("jenkins/Jenkinsfile")).expect("the recipe");
    let told = |line: &str| {
        let (_, rest) = line.split_once("sh '").or_else(|| line.split_once("script: '"))?;
        Some(rest.rsplit_once('\'')?.0.to_string())
    };
    let lines: Vec<String> = text.lines().filter_map(told).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.starts_with("assay ")), "{lines:?}");
    assert!(text.contains("code == 4") && text.contains("junit testResults: 'assay.xml'"), "{text}");
    a_pipeline_ends_as_its_check_does(&lines);
}

#[test]
fn maas_test_has_metadata_and_writes_its_status() {
    let test = "maas_test_has_metadata_and_writes_its_status";
    let text = fs::read_to_string(recipe("maas/assay.sh")).expect("the recipe");
    let block = text.split_once("# --- Start MAAS 1.0 script metadata ---\n").expect("a start").1;
    let block = block.split_once("# --- End MAAS 1.0 script metadata ---\n").expect("an end").0;
    let block: Vec<&str> = block.lines().map(|line| line.strip_prefix("# ").expect("a comment")).collect();
    let Some(metadata) = yaml(test, &block.join("\n")) else { return };
    assert_eq!(metadata["script_type"], "testing", "{metadata}");
    assert_eq!(metadata["hardware_type"], "node", "{metadata}");
    assert_eq!(metadata["parallel"], "disabled", "{metadata}");
    assert_eq!(metadata["destructive"], false, "{metadata}");

    let (begin, rest) = text.split_once("<<'SPEC'\n").expect("a spec");
    let (_, end_of_it) = rest.split_once("SPEC\n").expect("its end");
    let stage = Stage::pretending();
    let mut statuses = Vec::new();
    for (spec, code) in stage.specs() {
        // As who adapts the recipe: with limits of their own.
        let own = fs::read_to_string(&spec).expect("a spec");
        program(&stage.path("own.sh"), &format!("{begin}<<'SPEC'\n{own}SPEC\n{end_of_it}"));
        let result = stage.path("result.yaml");
        let mut command = stage.command("sh");
        command.arg("own.sh").env("RESULT_PATH", &result).env("TMPDIR", stage.folder.path());
        end(&mut command).expect(if code == 4 { 0 } else { code });
        let told = yaml(test, &fs::read_to_string(&result).expect("a result")).expect("PyYAML was here");
        statuses.push(told["status"].as_str().expect("a status").to_string());
        fs::remove_file(&result).expect("removed");
    }
    assert_eq!(statuses, ["passed", "failed", "degraded"]);

    // Without the path, as MAAS before 2.4, and with the recipe's own spec.
    let ended = end(stage.command("sh").arg(recipe("maas/assay.sh")).env("TMPDIR", stage.folder.path()));
    assert!(matches!(ended.sane().code, 0 | 1), "{ended:?}");
    let left: Vec<_> = fs::read_dir(stage.folder.path()).expect("a folder").flatten().collect();
    assert!(left.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("tmp.")), "{left:?}");
}

#[test]
fn nhc_fails_for_confirmed_alone_and_says_that_assay_is_missing() {
    let text = fs::read_to_string(recipe("nhc/assay.conf")).expect("the recipe");
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("* || ")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    let stage = Stage::pretending();
    // NHC evaluates a line after the other; its check wants the exit code that -r names, and shows
    // nothing of what is said.
    let nhc = "log() { echo \"$*\"; }\n\
               check_cmd_status() { test \"$3 $4\" = '-r 0' && shift 4 && \"$@\" >/dev/null 2>&1; }\nset -e\n";
    for (spec, code) in stage.specs() {
        let lines = lines.join("\n").replace("/var/lib/assay", "runs");
        let lines = lines.replace("/etc/assay/node.toml", &spec.display().to_string());
        let ended = |lines: &str| end(stage.command("sh").args(["-c", &format!("{nhc}{lines}")]));
        let judged = |wanted: i32| {
            let ended = ended(&lines);
            assert_eq!((ended.code, ended.out.as_str()), (wanted, ""), "{}", ended.err);
        };
        // No run at all is none that was rejected, and one alone may be so by chance.
        fs::create_dir(stage.path("runs")).expect("a folder");
        judged(0);
        end(stage.command("assay").args(["run", "--quick", "--out", "runs"])).expect(0);
        judged(0);
        let run = run_file(&stage.path("runs"));
        for half_hours in 1..=8 {
            let name = format!("runs/before-{half_hours}.assay.jsonl");
            write_earlier(&run, 1800 * half_hours, &stage.path(&name));
        }
        judged(i32::from(code == 1));
        let gone = ended(
            &lines.replace("assay check", "no-such-assay check").replace("-v assay", "-v no-such-assay"),
        );
        gone.expect(0);
        assert!(gone.out.starts_with("assay is not in "), "{}", gone.out);
        fs::remove_dir_all(stage.path("runs")).expect("removed");
    }
}
