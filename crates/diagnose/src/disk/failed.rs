//! I/O that failed, and data that came back wrong.

use std::collections::BTreeMap;

use super::points::{again, disk, name};
use crate::words::{capital, clipped, shell};
use crate::{Evidence, Rule};
use model::vocabulary::disk as ids;
use model::{Effect, Fact, Finding, Reason, Visit};

pub const FAILED_IO: Rule = Rule {
    id: ids::rule::DISK_FAILED_IO,
    title: "The disk failed an I/O",
    topic: "disk errors",
    meaning: "A read or write that returns an error means a broken disk, a full filesystem, or one that the \
        kernel made read-only. A block that returns other bytes than were written is worse, since no error \
        reports it.",
    action: "Save the data first. Then read the kernel's log for the same device, and follow the finding's \
        advice for this kind of error. See it: dmesg --level=err,warn",
    when: "A pass of a disk benchmark failed with an I/O error or moved fewer bytes than asked; its figures \
        carry the cause. Or disk.verify read back a wrong block, which rejects its figures.",
    how: "Errors are recognized by their text (`… failed: … (os error N)`). The medium: 5 EIO, 61 ENODATA, \
        84 EILSEQ, 121 EREMOTEIO (what is behind the device). Full: 28 ENOSPC, 122 EDQUOT. A filesystem that \
        became read-only: 30 EROFS. A device that is gone: 6 ENXIO, 19 ENODEV. The path to it: 67 ENOLINK, \
        107 ENOTCONN, 110 ETIMEDOUT, 112 EHOSTDOWN, 113 EHOSTUNREACH, 116 ESTALE.",
    calm: "all disk I/O completed",
    looked_at: "errors of I/O",
    source: file!(),
    check,
};

/// What kind of failure an error number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FailureKind {
    Medium,
    Room,
    ReadOnly,
    Gone,
    Path,
    Short,
    Wrong,
}

impl FailureKind {
    fn of(errno: u32) -> Option<FailureKind> {
        Some(match errno {
            5 | 61 | 84 | 121 => FailureKind::Medium,
            28 | 122 => FailureKind::Room,
            30 => FailureKind::ReadOnly,
            6 | 19 => FailureKind::Gone,
            67 | 107 | 110 | 112 | 113 | 116 => FailureKind::Path,
            _ => return None,
        })
    }

    fn cause(self) -> &'static str {
        match self {
            FailureKind::Medium => {
                "The medium, a cable or the controller fails, or what lies below it is too short."
            }
            FailureKind::Room => {
                "The filesystem, or the thin volume below it, is full, or a quota is used up."
            }
            FailureKind::ReadOnly => {
                "The filesystem is read-only: it was mounted so, or the kernel made it so after an error."
            }
            FailureKind::Gone => "The device is no longer there.",
            FailureKind::Path => "A cable, a network or a server behind the device did not answer in time.",
            FailureKind::Short => "What lies below ends there, or moved only a part without an error.",
            FailureKind::Wrong => "A write was lost or went elsewhere, or bytes changed on their way.",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            FailureKind::Medium => {
                "Save the data first. Look at the kernel's log, `smartctl -a` and what lies below."
            }
            FailureKind::Room => {
                "Free space, or name another directory with --dir. Assay's own files are already deleted."
            }
            FailureKind::ReadOnly => {
                "Find the first error in the kernel's log; check (fsck), then remount it."
            }
            FailureKind::Gone => {
                "See the kernel's log; plug it in again, or have the host attach the volume."
            }
            FailureKind::Path => {
                "Look at the kernel's log, `multipath -ll`, and the network or server behind it."
            }
            FailureKind::Short => {
                "Compare `blockdev --getsize64` with the file or volume that lies below it."
            }
            FailureKind::Wrong => {
                "Do not trust this disk. The same offset again means the medium. Test memory, too."
            }
        }
    }
}

/// A failed I/O, parsed from a pass's text.
struct Failure<'a> {
    kind: FailureKind,
    /// `read of 4096 bytes at offset 1048576`; empty if the text does not name it.
    what: &'a str,
    words: &'a str,
}

/// `read of 4096 bytes at offset 1048576 failed: Input/output error (os error 5)`, with anything
/// before it.
fn failure(text: &str) -> Option<Failure<'_>> {
    if let Some((what, words)) = text.split_once(" came back with ").filter(|(what, _)| is_io(what)) {
        return Some(Failure {
            kind: FailureKind::Short,
            what: what.rsplit(": ").next().unwrap_or(what),
            words,
        });
    }
    let number = text.rsplit_once("(os error ")?.1.split(')').next()?;
    let kind = FailureKind::of(number.parse().ok()?)?;
    let (what, words) = match text.split_once(" failed: ") {
        Some((what, words)) => (what.rsplit(": ").next().unwrap_or(what), words),
        None => ("", text),
    };
    Some(Failure { kind, what, words })
}

/// `read of 4096 bytes at offset 0`, with anything before it.
fn is_io(what: &str) -> bool {
    let what = what.rsplit(": ").next().unwrap_or(what);
    (what.starts_with("read of ") || what.starts_with("write of ")) && what.contains(" bytes at offset ")
}

fn check(evidence: &Evidence) -> Option<Vec<Finding>> {
    let plan = &evidence.run.header.plan;
    let of_disk =
        |case: u32| plan.get(case as usize).is_some_and(|planned| planned.case.bench.starts_with("disk."));
    let mut visits = evidence.visits().filter(|visit| of_disk(visit.case)).peekable();
    visits.peek()?;
    let mut found: BTreeMap<(u32, FailureKind), Vec<(&Visit, Failure)>> = BTreeMap::new();
    for visit in visits {
        let failure = match &visit.reason {
            Some(Reason::WrongAnswer(text)) if plan[visit.case as usize].case.bench == ids::VERIFY => {
                Some(Failure { kind: FailureKind::Wrong, what: "", words: text })
            }
            Some(reason) => failure(reason.text()),
            None => None,
        };
        if let Some(failure) = failure {
            found.entry((visit.case, failure.kind)).or_default().push((visit, failure));
        }
    }
    Some(found.into_iter().map(|((case, kind), failures)| finding(evidence, case, kind, &failures)).collect())
}

fn finding(evidence: &Evidence, index: u32, kind: FailureKind, failures: &[(&Visit, Failure)]) -> Finding {
    let case = &evidence.run.header.plan[index as usize].case;
    let key = case.key();
    let of = evidence.visits_of(index).count();
    let what =
        failures.iter().map(|(_, failure)| failure.what).find(|what| !what.is_empty()).unwrap_or("an I/O");
    let on = name(evidence);
    let headline = match kind {
        FailureKind::Short => format!(
            "A {} returned only {}, in {} of {of} passes",
            clipped(what),
            clipped(failures.first().map_or("", |(_, failure)| failure.words)),
            failures.len()
        ),
        FailureKind::Wrong => {
            format!(
                "{} returned other data than was written, in {} of {of} passes. Do not trust it.",
                capital(&on),
                failures.len()
            )
        }
        _ => format!(
            "{} failed in {} of {of} passes: {}",
            capital(&clipped(what)),
            failures.len(),
            error(failures.first().map_or("", |(_, failure)| failure.words))
        ),
    };
    let log = match kind {
        FailureKind::Room => "df -h; df -i".to_string(),
        _ => format!("dmesg | grep -E {}", shell(&names(evidence))),
    };
    Finding::problem(FAILED_IO.id, headline)
        .cause(kind.cause())
        .facts(failures.iter().take(5).map(|(visit, failure)| {
            let words = match failure.what {
                "" => clipped(failure.words),
                what => clipped(&format!("{what}: {}", failure.words)),
            };
            Fact::new(format!("pass {}", visit.order), words, &key)
        }))
        .fact("disk", clipped(&on), ids::probe::DISK)
        .facts(disk(evidence).into_iter().flat_map(|disk| &disk.stack).take(4).map(|leaf| {
            let model = leaf.model.as_ref().map_or(String::new(), |model| format!(", {model}"));
            let words = clipped(&format!("{}{model}", leaf.kind.words()));
            Fact::new(format!("device {}", leaf.name), words, format!("/sys/class/block/{}", leaf.name))
        }))
        .confirm(format!("{log}; {}", again(case)))
        .advice(kind.advice())
        .affects(
            if kind == FailureKind::Wrong { Effect::Rejects } else { Effect::Explains },
            evidence.keys_of(index),
        )
}

/// An error without its number.
fn error(words: &str) -> String {
    let text = words.split(" (os error").next().unwrap_or_default();
    clipped(&text.replace("Input/output error", "I/O error"))
}

/// All devices that the kernel's log may name.
fn names(evidence: &Evidence) -> String {
    let stack = disk(evidence).map_or(&[][..], |disk| &disk.stack);
    let names: Vec<String> = stack.iter().take(8).map(|block| block.name.clone()).collect();
    if names.is_empty() { "I/O".to_string() } else { names.join("|") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_by_their_words() {
        let read = failure("read of 4096 bytes at offset 1048576 failed: Input/output error (os error 5)")
            .expect("one");
        assert_eq!((read.kind, read.what), (FailureKind::Medium, "read of 4096 bytes at offset 1048576"));
        assert_eq!(read.words, "Input/output error (os error 5)");
        let fill = failure(
            "cannot fill the test file in /x: write of 4096 bytes at offset 0 failed: No space left on device (os error 28)",
        )
        .expect("one");
        assert_eq!((fill.kind, fill.what), (FailureKind::Room, "write of 4096 bytes at offset 0"));
        let short = failure("write of 4096 bytes at offset 8192 came back with 512 bytes").expect("one");
        assert_eq!((short.kind, short.what), (FailureKind::Short, "write of 4096 bytes at offset 8192"));
        assert_eq!(short.words, "512 bytes");
        assert!(failure("a guest came back with presents").is_none());
        let lost = failure("read of 512 bytes at offset 0 failed: Connection timed out (os error 110)");
        assert_eq!(lost.map(|lost| lost.kind), Some(FailureKind::Path));
        let made = failure("cannot make the test file: Read-only file system (os error 30)").expect("one");
        assert_eq!((made.kind, made.what), (FailureKind::ReadOnly, ""));
        for other in [
            "",
            "failed: x",
            "no such thing (os error 2)",
            "(os error )",
            "(os error 5",
            "killed by a signal",
        ] {
            assert_eq!(failure(other).is_some(), other == "(os error 5", "{other:?}");
        }
    }
}
