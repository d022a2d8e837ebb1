# The same disk in the next boot: the same command.
cd /mnt
export ASSAY_STATE=/mnt/state
groups=1 loops=5
knobs >before-2
cat /proc/sys/kernel/random/boot_id >boot-2
# What the journal calls ours may be the new boot's own value: it stays.
cp -r state trap
file=/sys/kernel/debug/sched/min_granularity_ns
value=$(cat $file)
grep "^$file:" turned | cut -d : -f 2 >$file
ASSAY_STATE=/mnt/trap assay restore >said-trap
cat $file >trapped
echo "$value" >$file
(sweep out >said-2 2>&1)
knobs >after-2
ls state trap >left
cd /root
cp -r /mnt/[a-z]* .
