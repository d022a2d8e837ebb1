# every_case_once BENCHMARKS: in a guest, `assay run --quick` of these until every case was visited
# once, however long the emulation takes. Leaves the run file in out/, and in numa_maps what the
# kernel told meanwhile of memory that was bound to nodes.
every_case_once() {
    {
        until cases=$(grep -o 'measuring [0-9]* case' said); do sleep 0.2; done
        cases=${cases//[^0-9]/}
        until [ "$(grep -hc '^{"visit"' out/*.jsonl)" -ge "$cases" ]; do
            grep -hs bind: /proc/[0-9]*/numa_maps >>numa_maps || true
            sleep 0.2
        done
        kill -TERM "$(cat pid)"
    } >/dev/null 2>&1 &
    watch=$!
    status=0
    sh -c 'echo $$ >pid; exec assay run --quick --force --only "$0" --budget 20m --visit-limit 2m --out out' "$1" \
        >said 2>&1 || status=$?
    kill $watch 2>/dev/null || true
    # Ended by us, as a rule; or by itself, with 3 where nothing could be measured, before we came
    # to it.
    case $status in
    130 | 0 | 3) ;;
    *)
        cat said >&2
        exit 1
        ;;
    esac
}
