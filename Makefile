# Two commands do everything on a fresh machine; the other two make long evidence.
.PHONY: run test bench prove static

# Builds, evaluates this server in 90 s, leaves run file, report.html and report.json in assay-out/.
run:
	cargo build --release --locked
	target/release/assay run --quick --out assay-out

# Installs what the tests need (where it can) and runs them all.
test:
	tests/install-needs
	cargo test --locked
	@if cargo clippy --version >/dev/null 2>&1; then cargo clippy --locked --all-targets -- -D warnings; else echo "skipped: clippy is not installed"; fi

# Side by side with peer tools on this machine.
bench:
	benches/install-peer-tools
	cargo bench --locked --bench peers

# The tables of METHODOLOGY.md: coverage, false positives, detection; and ten minutes of fuzzing for each of nine
# readers and parsers (an hour and a half; fuzz/run needs a C++ compiler).
prove:
	cargo bench --locked --bench prove
	fuzz/run 600

# One static glibc binary.
static:
	cargo static
