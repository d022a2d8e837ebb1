#!/bin/sh
# What node-problem-detector runs: `assay check` on the run files that are on this disk. It measures
# nothing.
#
#   assay-check.sh RUNS SPEC
#
# Exit codes are those that node-problem-detector knows: 0 in order, 1 a problem, 2 unknown. A host
# is a problem only where it is confirmed that it fails the spec (1 of `assay check --confirmed`).
# Undecided or not yet confirmed (4), nothing to judge (3), a wrong spec (2), no program, no answer
# within the time are unknown. One line of 80 characters, in ASCII: what is longer is cut there
# anyway.
#
# Change: $ASSAY, where the program is not in the PATH; the seconds below, less than `timeout` in
# assay-monitor.json.
assay=${ASSAY:-assay}
said=$(NO_COLOR=1 timeout -k 1 "${ASSAY_SECONDS:-8}" \
    "$assay" check "${1:?RUNS}" --confirmed --spec "${2:?SPEC}" --brief --ascii 2>&1)
code=$?
case $code in
124 | 137) said="assay check gave no answer in time" ;;
126 | 127) said="assay cannot be run: $said" ;;
esac
printf '%s\n' "$said" | head -n 1 | LC_ALL=C tr -cd '[:print:]' | cut -c 1-80
case $code in
0 | 1) exit "$code" ;;
esac
exit 2
