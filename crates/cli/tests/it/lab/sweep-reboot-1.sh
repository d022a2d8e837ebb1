# In a guest with a disk: a sweep in whose midst the machine is reset, with knobs turned.
cd /mnt
export ASSAY_STATE=/mnt/state
groups=1 loops=5
knobs >before
cat /proc/sys/kernel/random/boot_id >boot-1
sweep out >said-1 2>&1 &
sweep=$!
until [ "$(visits out)" -ge 6 ]; do
    kill -0 $sweep || { cat said-1 >&2; exit 1; }
    sleep 0.1
done
stop_turned $sweep
knobs >turned
cp state/knobs.json journal-1.json
cat out/*.jsonl >reset.jsonl
sync
echo b >/proc/sysrq-trigger
sleep 60
