# In a guest: a sweep that is killed again and again, and the same command at last.
groups=1 loops=5
knobs >before
watchdog() {
    for process in /proc/[0-9]*; do
        tr '\0' ' ' 2>/dev/null <$process/cmdline | grep -q '^[^ ]* restore --watch' && echo "${process#/proc/}"
    done || true
}
start() {
    sweep out >>said 2>&1 &
    sweep=$!
}
# Killed at some moment: its watchdog puts back.
for round in 1 2 3 4 5; do
    start
    until turned $sweep; do sleep 0.05; done
    sleep 0.$((RANDOM % 10))
    kill -9 $sweep
    wait $sweep || true
    cat out/*.jsonl >killed-$round.jsonl
    waited=0
    until knobs | cmp -s - before || [ $waited -gt 200 ]; do
        waited=$((waited + 1))
        sleep 0.05
    done
    knobs >after-$round
done
# The watchdog too, with a knob turned: `assay restore` puts back, then the same command.
for round in 6 7; do
    start
    stop_turned $sweep
    kill -9 $sweep $(watchdog)
    wait $sweep || true
    cat out/*.jsonl >killed-$round.jsonl
    knobs >left-$round
    if [ $round = 6 ]; then
        assay restore >restored
        knobs >after-6
    fi
done
(sweep out >said-last 2>&1)
knobs >after
