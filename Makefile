# Two commands do everything on a fresh machine; three others make long evidence.
.PHONY: run test bench prove lab static

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

# Where a free pair sits on five emulated machines under kernels 5.10, 6.1 and 6.12: the table of lab/RESULTS.md (15
# to 25 minutes).
lab: static
	@for item in qemu10 5.10-cloud-amd64 6.1-cloud-amd64 6.12-cloud-amd64; do \
		lab/fetch $$item || echo "not fetched: $$item; what needs it will be skipped"; \
	done
	cargo test --locked --test it -- --ignored --nocapture placements_by_kernel

# One static glibc binary.
static:
	cargo static
