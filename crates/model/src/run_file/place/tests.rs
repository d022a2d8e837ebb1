//! Run files whose path leads elsewhere, and files that are not gone on with.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use super::*;

/// A file in a folder `out` of a folder.
fn placed(dir: &Path) -> (Place, PathBuf) {
    let out = dir.join("out");
    fs::create_dir(&out).expect("a folder");
    let folder = Arc::new(open_folder(&out).expect("a folder"));
    let place = Place::create(&folder, &out, "run").expect("a file").expect("a name");
    place.file().write_all(b"measured\n").expect("written");
    (place, out)
}

/// What `lost` says is in brackets, of a path that no longer leads there.
#[track_caller]
fn is_elsewhere(place: &Place, why: &str) {
    assert_eq!(place.lost(9), Some(format!("is no longer in its place ({why})")));
}

fn held(place: &Place) -> String {
    io::read_to_string(place.whole()).expect("readable")
}

#[test]
fn it_is_said_why_a_path_leads_elsewhere() {
    let dir = tempfile::tempdir().expect("a folder");
    let (place, out) = placed(dir.path());
    let (path, aside) = (out.join("run.assay.jsonl"), out.join("aside"));
    assert_eq!(place.lost(9), None);
    fs::rename(&path, &aside).expect("moved");
    is_elsewhere(&place, "it or its folder was moved");
    symlink(&aside, &path).expect("a link");
    is_elsewhere(&place, "replaced by a link");
    fs::remove_file(&path).expect("removed");
    fs::write(&path, "else").expect("written");
    is_elsewhere(&place, "replaced by something else");
    fs::rename(&aside, &path).expect("moved back");
    assert_eq!(place.lost(9), None);
    // A folder that was moved and linked to leads there still.
    fs::rename(&out, dir.path().join("moved")).expect("moved");
    is_elsewhere(&place, "it or its folder was moved");
    symlink(dir.path().join("moved"), &out).expect("a link");
    assert_eq!(place.lost(9), None);
    fs::remove_file(&path).expect("removed");
    is_elsewhere(&place, "removed");
    assert_eq!(held(&place), "measured\n");
}

#[test]
fn a_copy_goes_to_the_first_place_that_is_free_and_safe() {
    let dir = tempfile::tempdir().expect("a folder");
    let (place, out) = placed(dir.path());
    let (above, elsewhere) = (dir.path().join("above"), dir.path().join("elsewhere"));
    fs::create_dir(&above).expect("a folder");
    fs::create_dir(&elsewhere).expect("a folder");
    let copied = |place: &Place| {
        let written = Written::of(&b"measured\n"[..]).expect("packed");
        place
            .again(&written, &out, std::slice::from_ref(&above))
            .map(|copy| (copy.path().to_path_buf(), held(&copy)))
    };
    let whole = "measured\n".to_string();
    // Its name is taken, by a link that leads nowhere.
    let path = out.join("run.assay.jsonl");
    fs::remove_file(&path).expect("removed");
    symlink(dir.path().join("nowhere"), &path).expect("a link");
    assert_eq!(copied(&place), Ok((out.join("run-2.assay.jsonl"), whole.clone())));
    // Gone: made again.
    fs::remove_dir_all(&out).expect("removed");
    assert_eq!(copied(&place), Ok((path.clone(), whole.clone())));
    // Led elsewhere, or no folder.
    fs::remove_dir_all(&out).expect("removed");
    symlink(&elsewhere, &out).expect("a link");
    assert_eq!(copied(&place), Ok((above.join("run.assay.jsonl"), whole.clone())));
    fs::remove_file(&out).expect("removed");
    fs::write(&out, "else").expect("written");
    assert_eq!(copied(&place), Ok((above.join("run-2.assay.jsonl"), whole)));
    assert_eq!(fs::read_dir(&elsewhere).expect("there").count(), 0);
    assert!(!dir.path().join("nowhere").exists());
    // Nowhere at all.
    fs::remove_dir_all(&above).expect("removed");
    let told = copied(&place).expect_err("no place");
    assert!(told.contains("out: ") && told.contains("above: "), "{told}");
}

#[test]
fn it_is_said_what_others_did_to_the_bytes() {
    let dir = tempfile::tempdir().expect("a folder");
    let (place, _) = placed(dir.path());
    for (length, told) in [
        (4, "was truncated by another program (it has 4 of the 9"),
        (12, "it has 12 bytes, and this run wrote 9"),
    ] {
        place.file().set_len(length).expect("cut");
        assert!(place.lost(9).is_some_and(|why| why.contains(told)), "{:?}", place.lost(9));
    }
    place.file().set_len(9).expect("cut");
    assert_eq!(place.lost(9), None);
}

#[test]
fn what_was_written_is_known_again() {
    let mut written = Written::of(&b"measured\nto"[..]).expect("packed");
    assert!(written.is_torn());
    written.add(b"rn\n").expect("packed");
    assert_eq!((written.length(), written.is_torn()), (14, false));
    assert_eq!(io::read_to_string(written.whole()).expect("readable"), "measured\ntorn\n");
    for (file, is_held) in [
        ("measured\ntorn\n", true),
        ("measured\ntorm\n", false),
        ("measured\n", false),
        ("", false),
        ("measured\ntorn\n\n", false),
    ] {
        assert_eq!(written.is_held_by(file.as_bytes()).expect("readable"), is_held, "{file:?}");
    }
}

#[test]
fn only_our_own_name_is_taken_away() {
    let dir = tempfile::tempdir().expect("a folder");
    let (place, out) = placed(dir.path());
    let path = out.join("run.assay.jsonl");
    fs::remove_file(&path).expect("removed");
    fs::write(&path, "else").expect("written");
    place.remove();
    assert_eq!(fs::read_to_string(&path).expect("there"), "else");
}
