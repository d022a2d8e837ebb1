# For scripts in guests that sweep. The scheduler's files are all of debugfs's but those that change
# by themselves.
knobs() {
    find /sys/kernel/debug/sched -type f ! -name debug ! -name max_newidle_lb_cost -exec grep -H '' {} + | sort
}
# sweep OUT: becomes a sweep of two by two cells, small ones; smaller where their figures do not
# matter ($groups, $loops).
sweep() {
    exec assay sweep hackbench --quick --force --response none --effect 1000 --budget 30m --visit-limit 2m \
        --param groups=${groups:-2} --param fds=8 --param loops=${loops:-20} \
        --knob min_granularity_ns=0.1ms,10ms --knob wakeup_granularity_ns=0,15ms --out "$1"
}
# visits OUT: finished ones.
visits() {
    cat "$1"/*.jsonl 2>/dev/null | grep -c '^{"visit"' || true
}
# turned PID: whether that sweep, which must be alive, has a knob turned now.
turned() {
    kill -0 "$1" 2>/dev/null || { cat said* >&2; exit 1; }
    ! knobs | cmp -s - before
}
# stop PID: stops it, and returns once it stands.
stop() {
    kill -STOP "$1" || return
    until grep -q '^State:.[TZ]' "/proc/$1/status"; do sleep 0.02; done
}
# stop_turned PID: stops that sweep while it has a knob turned.
stop_turned() {
    until turned "$1" && stop "$1" && turned "$1"; do
        kill -CONT "$1"
        sleep 0.05
    done
}
