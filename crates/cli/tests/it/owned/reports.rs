//! What a report, or a file that a user names, may take the place of.

use super::*;

/// As shells do it: `assay machine --save /dev/stdout >file`.
#[test]
fn a_file_that_is_given_open_is_written_to_and_its_name_stays() {
    let dir = tempfile::tempdir().expect("a folder");
    let link = dir.path().join("stdout");
    symlink("/proc/self/fd/1", &link).expect("a link");
    let twice = dir.path().join("link-to-it");
    symlink(&link, &twice).expect("a link");
    let begun = dir.path().join("captured");
    for name in [&link, &twice] {
        let save = |words: &str| {
            let script = format!("echo first; \"$0\" \"$@\" {words}; echo last");
            let mut machine = crate::assay();
            machine.args(["machine", "--save"]).arg(name);
            let mut shell = wrapped(&["sh", "-c", &script], &machine);
            shell.stdout(fs::File::create(&begun).expect("a file")).status().expect("a shell")
        };
        assert!(save("").success());
        let captured = fs::read_to_string(&begun).expect("a file");
        assert!(captured.starts_with("first\n") && captured.ends_with("last\n"), "{captured}");
        // What the verb prints itself follows.
        let saved =
            serde_json::Deserializer::from_str(&captured[6..]).into_iter::<serde_json::Value>().next();
        assert!(saved.is_some_and(|saved| saved.is_ok_and(|saved| saved.is_object())), "{captured}");
        assert!(link.is_symlink() && twice.is_symlink());
    }
    // Another one that is open is added to.
    let other = dir.path().join("other");
    fs::write(&other, "first\n").expect("written");
    let mut machine = crate::assay();
    machine.args(["machine", "--save", "/proc/self/fd/7"]);
    let script = format!("exec 7<>{}; exec \"$0\" \"$@\"", other.display());
    end(&mut wrapped(&["sh", "-c", &script], &machine)).expect(0);
    let text = fs::read_to_string(&other).expect("a file");
    assert!(text.starts_with("first\n{"), "{text}");
    for place in ["/dev/assay-machine.json", "/proc/assay-machine.json"] {
        end(crate::assay().args(["machine", "--save", place])).expect(3).says(&["name another one"]);
        assert!(!Path::new(place).exists());
    }
}

/// A folder, and the file of a run in its `out`.
fn measured() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let out = dir.path().join("out");
    end(&mut run_into(&out, &pretended("selftest.steady"))).expect(0);
    let run = run_file(&out);
    (dir, run)
}

#[test]
fn a_report_replaces_a_file_or_a_link_and_nothing_else() {
    let (dir, run) = measured();
    let into = |name: &str| {
        let mut command = crate::assay();
        command.arg("compare").args([&run, &run]).arg("--out").arg(dir.path().join(name));
        end(&mut command)
    };
    // A link goes, and what it points to stays.
    put(&dir.path().join("kept"));
    symlink(dir.path().join("kept"), dir.path().join("link.json")).expect("a link");
    let kept = fs::read(dir.path().join("kept")).expect("a file");
    into("link.json").expect(0);
    assert!(!dir.path().join("link.json").is_symlink());
    assert_eq!(fs::read(dir.path().join("kept")).expect("a file"), kept);
    // Measurements, folders and sockets stay.
    let measured = fs::read(&run).expect("a run file");
    let name = format!("out/{}", run.file_name().expect("a name").to_string_lossy());
    into(&name).expect(2).says(&["there is no report form .jsonl"]);
    let copy = dir.path().join("copy.html");
    fs::copy(&run, &copy).expect("copied");
    into("copy.html").expect(3).says(&["run file", "name another file"]);
    assert_eq!(fs::read(&run).expect("a run file"), measured);
    assert_eq!(fs::read(&copy).expect("a run file"), measured);
    into("out").expect(2).says(&["no ending"]);
    fs::create_dir(dir.path().join("folder.html")).expect("a folder");
    into("folder.html").expect(3).says(&["is a folder"]);
    let socket = dir.path().join("socket.json");
    let _bound = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    into("socket.json").expect(3).says(&["a device or a socket", "name another file"]);
    assert!(socket.metadata().expect("it is there").file_type().is_socket());
    // A pipe gets it all, and stays a pipe.
    let pipe = dir.path().join("pipe.json");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || {
            let mut text = String::new();
            fs::File::open(pipe).and_then(|mut file| file.read_to_string(&mut text)).expect("read");
            text
        })
    };
    into("pipe.json").expect(0);
    let text = reader.join().expect("read");
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    assert!(pipe.metadata().expect("it is there").file_type().is_fifo());
    // Nothing takes all, and stays a device.
    let nothing = dir.path().join("null.html");
    match Command::new("mknod").arg(&nothing).args(["c", "1", "3"]).output() {
        Ok(made) if made.status.success() => {
            into("null.html");
            assert!(nothing.metadata().expect("it is there").file_type().is_char_device());
        }
        _ => skipped("a_report_replaces_a_file_or_a_link_and_nothing_else: a device", "mknod needs root"),
    }
}

/// Neither a new run nor a report of this one takes the name.
#[track_caller]
fn stays(run: &Path, name: &str) {
    let out = run.parent().expect("a folder");
    let mut ended = vec![end(&mut run_into(out, &format!("{} --new", pretended("selftest.steady"))))];
    if name == "report.html" {
        ended.push(on_file("report", run, ""));
    }
    for ended in ended {
        ended.expect(3).says(&[
            name,
            "that Assay did not write or that was edited since; it stays",
            "the run file is safe",
            "--out",
        ]);
    }
}

#[test]
fn a_report_takes_no_name_that_somebody_else_uses() {
    let (dir, run) = measured();
    let out = dir.path().join("out");
    let victim = dir.path().join("victim");
    put(&victim);
    let whole = fs::read(&victim).expect("a file");
    // Every form of one is known again.
    for format in ["html", "json", "markdown", "csv", "lmbench"] {
        let again = format!("--format {format} --out {}", dir.path().join("again").display());
        on_file("report", &run, &again).expect(0);
        on_file("report", &run, &again).expect(0);
    }
    for name in ["report.html", "report.json"] {
        let path = out.join(name);
        let ours = fs::read(&path).expect("a report");
        // An older report is replaced, and so is an empty file.
        for text in [&ours[..], b""] {
            fs::remove_file(&path).expect("removed");
            fs::write(&path, text).expect("written");
            end(&mut run_into(&out, &format!("{} --new", pretended("selftest.steady")))).expect(0);
        }
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "my own notes on Assay").expect("written");
        stays(&run, name);
        assert_eq!(fs::read_to_string(&path).expect("a file"), "my own notes on Assay");
        fs::remove_file(&path).expect("removed");
        symlink(&victim, &path).expect("a link");
        stays(&run, name);
        assert!(path.is_symlink() && fs::read(&victim).expect("a file") == whole);
        fs::remove_file(&path).expect("removed");
        // A FIFO that has no reader: the command does not wait for one.
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a FIFO");
        stays(&run, name);
        fs::remove_file(&path).expect("removed");
    }
}

/// A report is that of its run for ever, and the name that people look for is the newest's.
#[test]
fn the_next_run_takes_no_report_away() {
    let (_dir, first) = measured();
    let out = first.parent().expect("a folder").to_path_buf();
    let report = |run: &Path, form: &str| {
        let name = run.file_name().expect("a name").to_string_lossy().replace(".assay.jsonl", "");
        out.join(format!("{name}.report.{form}"))
    };
    let before = ["html", "json"].map(|form| fs::read(report(&first, form)).expect("a report"));
    // What 0.1 left in the folder: a report that is no link.
    fs::remove_file(out.join("report.json")).expect("removed");
    fs::rename(report(&first, "json"), out.join("report.json")).expect("renamed");
    let other = pretended("selftest.steady").replace("--pretend 7", "--pretend 8");
    let ended = end(&mut run_into(&out, &format!("{other} --new")));
    ended.expect(0).says(&["report.json of an earlier run is "]);
    for (form, text) in ["html", "json"].iter().zip(&before) {
        assert!(fs::read(report(&first, form)).expect("a report") == *text, "{form}");
        let link = out.join(format!("report.{form}"));
        let newest = link.read_link().expect("a link");
        assert!(newest != report(&first, form).file_name().expect("a name"), "{newest:?}");
        assert!(ended.err.contains(&*newest.to_string_lossy()), "{}", ended.err);
    }
    on_file("report", &first, "").expect(0);
    assert_eq!(out.join("report.html").read_link().ok(), report(&first, "html").file_name().map(Into::into));
    is_tidy(&out);
}

#[test]
fn what_changes_while_a_report_is_written_leads_nowhere_else() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (dir, run) = measured();
    let out = dir.path().join("out");
    let victim = dir.path().join("victim");
    put(&victim);
    let whole = fs::read(&victim).expect("a file");
    let done = AtomicBool::new(false);
    let exchange = || {
        let (a, b) = (out.join("report.html"), out.join("other"));
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(rustix::fs::CWD, &a, rustix::fs::CWD, &b, flags)
    };
    fs::remove_file(out.join("report.html")).expect("removed");
    let pipe = out.join("other");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
    symlink(&victim, out.join("report.html")).expect("a link");
    if exchange().is_err() {
        return skipped(
            "what_changes_while_a_report_is_written_leads_nowhere_else",
            "names cannot be exchanged here",
        );
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = exchange();
            }
        });
        for _ in 0..40 {
            on_file("report", &run, "").sane();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read(&victim).expect("a file"), whole);
}

#[test]
fn what_was_read_and_what_was_measured_stay_whatever_their_names() {
    let (dir, run) = measured();
    let day = dir.path().join("day.html");
    fs::copy(&run, &day).expect("copied");
    let packed = dir.path().join("packed.json");
    let mut encoder = flate2::write::GzEncoder::new(
        fs::File::create(&packed).expect("a file"),
        flate2::Compression::default(),
    );
    std::io::copy(&mut fs::File::open(&run).expect("a file"), &mut encoder).expect("packed");
    encoder.finish().expect("packed");
    let saved = dir.path().join("machine.json");
    let assay = |words: &[&std::ffi::OsStr]| end(crate::assay().args(words));
    let word = std::ffi::OsStr::new;
    assay(&[word("machine"), word("--save"), saved.as_ref()]).expect(0);
    for measured in [&day, &packed] {
        let before = fs::read(measured).expect("a file");
        let name = measured.as_os_str();
        for words in [
            vec![word("compare"), name, name, word("--out"), name],
            vec![word("compare"), run.as_ref(), run.as_ref(), word("--out"), name],
            vec![word("machine"), word("--save"), name],
        ] {
            assay(&words).expect(3).says(&["which a report never replaces", "name another file"]);
        }
        assert!(fs::read(measured).expect("a file") == before);
    }
    let before = fs::read(&saved).expect("a file");
    let same = [word("machine"), word("--from"), saved.as_ref(), word("--save"), saved.as_ref()];
    assay(&same).expect(3).says(&["it is the input", "name another file"]);
    assert!(fs::read(&saved).expect("a file") == before);
}
