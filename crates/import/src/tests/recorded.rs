//! Numbers of recorded results, each found by its place in a line and without a pattern.

use super::{found, recorded};

/// A file of `tests/foreign`, a part of the line, which of its words, key.
type Row = (&'static str, &'static str, usize, &'static str);

const ROWS: [Row; 13] = [
    ("iperf2-2.0.14.txt", "[SUM]", 5, "network.tcp@free?direction=send/streams=2#sent"),
    // Backwards the client receives.
    ("iperf2-2.0.14.txt", "0.0000-1.9977", 6, "network.tcp@free?direction=receive/streams=1#bandwidth"),
    ("iperf2-2.2.1.txt", "[SUM-2]", 5, "network.tcp@free?direction=send/streams=2#sent"),
    (
        "iperf2-2.2.1.txt",
        "0.0000-2.0133 sec   915",
        6,
        "network.tcp@free?direction=both&way=receive/streams=1#bandwidth",
    ),
    ("iperf2-2.2.1.txt", "0.0000-2.0014", 6, "network.tcp@free?direction=both&way=send/streams=1#sent"),
    // One test after the other, of which the second comes back.
    ("iperf2-2.2.1.txt", "0.0000-2.0156", 6, "network.tcp@free?direction=receive/streams=1#bandwidth"),
    ("iperf2-2.2.1-server.txt", "[SUM-2]", 5, "network.tcp@free?direction=receive/streams=2#bandwidth"),
    ("iperf2-connected-first.txt", "[SUM]", 5, "network.tcp@free?direction=send/streams=2#sent"),
    ("openssl-3.5-keys.txt", "rsa  2048 bits 0", 9, "cpu.openssl-key@free?name=rsa%20%202048%20bits#encrypt"),
    (
        "openssl-3.5-keys.txt",
        "rsa  2048 bits 0",
        10,
        "cpu.openssl-key@free?name=rsa%20%202048%20bits#decrypt",
    ),
    ("openssl-3.5-made.txt", " ML-KEM-768", 5, "cpu.openssl-key@free?made_for=encap&name=ml-kem-768#encap"),
    ("openssl-3.5-made.txt", "ML-DSA-65", 6, "cpu.openssl-key@free?made_for=sign&name=ml-dsa-65#verify"),
    ("openssl-3.5-made.txt", "ML-DSA-44", 4, "cpu.openssl-key@free?made_for=sign&name=ml-dsa-44#keygen"),
];

#[test]
fn numbers_stand_where_the_tool_printed_them() {
    for (name, part, word, key) in ROWS {
        let text = recorded(name);
        let line = text.lines().rfind(|line| line.contains(part)).expect(part);
        found::stands(&text, line, word, 1.0, key);
    }
}
