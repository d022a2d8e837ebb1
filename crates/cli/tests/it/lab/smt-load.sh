# In a guest with SMT: a study of load in which every case was visited once, and its report.
assay smt --quick --force --kind loop --budget 10m --visit-limit 5m --out out >said 2>&1 &
study=$!
until cases=$(grep -o 'measuring [0-9]* case' said); do
    kill -0 $study 2>/dev/null || { cat said >&2; exit 1; }
    sleep 0.2
done
cases=${cases//[^0-9]/}
until [ "$(grep -hc '^{"visit"' out/*.jsonl)" -ge "$cases" ]; do
    kill -0 $study 2>/dev/null || break
    sleep 0.2
done
kill -TERM $study 2>/dev/null || true
wait $study || true
assay report --format markdown out/*.jsonl >report.md
