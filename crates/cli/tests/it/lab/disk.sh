# Faults of a disk, one after another, on one guest. Each leaves NAME.json, what it said in
# NAME.said, its status in NAME.status and what lay in the directory afterwards in NAME.left.
device=/dev/nvme0n1
sectors=$(blockdev --getsz $device)
umount /mnt
export DM_DISABLE_UDEV=1
dm=/bin/dmsetup

# table LINE: what the device does from now on.
table() {
    echo "$1" | $dm load faulty
    $dm resume --noflush faulty
}

# measure NAME BENCHMARKS [OPTION...]: in /mnt; goes on whatever comes of it.
measure() {
    name=$1
    only=$2
    shift 2
    status=0
    assay run --quick --force --only "$only" --dir /mnt --out "out-$name" --visit-limit 60s --json "$@" \
        >"$name.json" 2>"$name.said" || status=$?
    echo $status >"$name.status"
    ls -A /mnt | grep -v lost+found >"$name.left" || true
}

# when_told NAME NUMBER PATTERN COMMAND: once that many lines of the run file match, or the run has
# ended.
when_told() {
    until [ -e "$1.status" ] || [ "$(cat out-"$1"/*.jsonl 2>/dev/null | grep -c "$3")" -ge "$2" ]; do
        sleep 0.2
    done
    shift 3
    "$@"
}

# end_run: by the first process of Assay, which is the session.
end_run() {
    kill -TERM "$(pidof assay | xargs -n 1 | sort -n | head -n 1)"
}

# measure_each NUMBER NAME BENCHMARKS [OPTION...]: each of so many cases once, however long that
# takes.
measure_each() {
    when_told "$2" "$1" '^{"visit"' end_run &
    shift
    measure "$@" --budget 1h
    wait
}

# measure_while_it_fails NAME COMMAND: the command breaks the disk after a visit; the run ends when
# one has failed.
measure_while_it_fails() {
    {
        when_told "$1" 1 '^{"visit"' eval "$2"
        when_told "$1" 1 '^{"visit".*"reason":{' end_run
    } &
    measure "$1" disk.random,disk.sequential --budget 1h
    wait
}

$dm create faulty --table "0 $sectors linear $device 0"
mount -t ext4 /dev/mapper/faulty /mnt
assay machine --dir /mnt --json >machine.json 2>machine.said || true

# The kernel asks the device for completions, of which no interrupt tells then; and blocks without
# io_uring.
measure_each 2 polled disk.random --engine polled --block 4k --depth 1,8
measure_each 1 psync disk.random --engine psync --block 4k --depth 8

# Every read takes 10 ms longer, writes don't.
table "0 $sectors delay $device 0 10 $device 0 0"
measure_each 1 delay disk.random --block 4k --depth 1
table "0 $sectors linear $device 0"

# A limit of this control group: 100 reads a second.
echo +io >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/limited
dev=$(cat /sys/block/dm-0/dev)
echo "$dev riops=100" >/sys/fs/cgroup/limited/io.max
cat /sys/fs/cgroup/limited/io.max >limit
(
    echo 0 >/sys/fs/cgroup/limited/cgroup.procs
    # So many at once wait for the limit, however slow the host is; and of three visits one may have
    # stalled.
    measure_each 3 limit disk.random --block 4k --depth 32
)

# Read-only in the midst of a run, as a kernel makes a file system that it found broken.
measure_while_it_fails readonly 'echo u >/proc/sysrq-trigger'
# Not by remount: files without a name were open when it became read-only, and those only a mount
# clears away.
umount /mnt
mount -t ext4 /dev/mapper/faulty /mnt

# The device fails in the midst of a run: every read and every write.
measure_while_it_fails flakey "table '0 $sectors flakey $device 0 0 3600'"
table "0 $sectors linear $device 0"
umount /mnt || true

# A disk that writes nothing removes nothing either: the next run on it does.
mount -t ext4 /dev/mapper/faulty /mnt
measure after disk.random --budget 1s
umount /mnt || true
