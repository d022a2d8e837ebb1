# Two commands do everything on a fresh machine; `static`, `install` and `release` hand out; the others make long evidence.
.PHONY: run test pages bench prove lab map soak fleet static install uninstall release

# Builds, evaluates this server in 90 s, leaves run file, report.html and report.json in assay-out/.
run:
	cargo build --release --locked
	target/release/assay run --quick --out assay-out

# Installs what the tests need (where it can) and runs them all; says which took longest. Clippy reads the code as it is built.
test:
	tests/run

# The reference pages of the book, from the program.
pages:
	cargo run --locked -- man --markdown docs/book/reference

# Side by side with peer tools on this machine.
bench:
	crates/prove/install-peer-tools
	cargo build --release --locked
	cargo bench --locked -p prove --bench peers

# The tables of docs/results: coverage, false positives, detection; and ten minutes of fuzzing for each of nine
# readers and parsers (an hour and a half; fuzz/run needs a C++ compiler).
prove:
	cargo build --release --locked
	cargo run --release --locked -p prove
	fuzz/run 600

# Under kernels 5.10, 6.1 and 6.12, emulated: where a free pair sits on five machines, and what hackbench makes of the
# scheduler's knobs; and whether a planted round trip or loss is named as what limits a transfer (sixty experiments).
# And whether a guest whose CPUs are paused from outside names who did it (sixty experiments).
# The tables of lab/RESULTS.md. And 64-bit ARM, where the build for it can be had.
lab: static
	@for item in qemu10 5.10-cloud-amd64 6.1-cloud-amd64 6.12-cloud-amd64; do \
		lab/fetch $$item || echo "not fetched: $$item; what needs it will be skipped"; \
	done
	@lab/fetch 6.1-cloud-arm64 cross-arm64 rust-arm64 && lab/build-arm64 || echo "not built for 64-bit ARM; what needs it will be skipped"
	cargo test --locked --test it -- --ignored --nocapture lab::

# The map of hackbench over two knobs of a real 6.1 kernel, docs/sweep-6.1.svg (half an hour).
map: static
	lab/fetch qemu10 6.1-cloud-amd64
	lab/map

# 5,000 changed run files and imports through every reader; kills at random moments amid files that look like ours, for 20
# minutes (docs/results/soak.md has the table of all soaks of a commit); kills of a Flink cluster's processes, and each row
# that its queries give; and a report of a million visits in a gigabyte. SOAK_SECONDS and SOAK_MUTATIONS make it shorter.
soak:
	cargo test --release --locked --test it -- --ignored --nocapture --test-threads 1 mutations::soak soak::kills nexmark::whoever nexmark::every_row a_million_visits
	cargo test --release --locked -p import --lib -- --ignored --nocapture mutated::soak soak_of_wrappings

# The recipes of contrib/ with the real engines: Ansible over ssh on nine hosts, Slurm with two nodes, ReFrame by itself and
# over that Slurm; the quick run in a restricted pod (root).
fleet: static
	tests/install-needs
	cargo test --locked --test it -- --ignored --nocapture --test-threads 1 engines:: pods::

# One static glibc binary.
static:
	cargo static

# What make static built, its manual pages and completions; as PREFIX=/usr/local and DESTDIR say.
PROGRAM ?= target/$(shell uname -m)-unknown-linux-gnu/release/assay
PREFIX ?= /usr/local
export PREFIX DESTDIR
install:
	release/install $(PROGRAM)

uninstall:
	release/install --remove

# Static programs for x86-64 and, where it can be built, 64-bit ARM, twice in two folders and compared; tar.gz, deb, rpm, apk,
# an image, bills of materials and checksums in target/dist; then each way to install of README, tried.
release:
	tests/install-needs
	release/build
	cargo test --locked --test it -- --ignored --nocapture distribution::
