# In a guest whose SMT can be switched: a table that is killed with its watchdog while SMT is off
# and restored, then one in which every case was visited once.
watchdog() {
    for process in /proc/[0-9]*; do
        tr '\0' ' ' 2>/dev/null <$process/cmdline | grep -q '^[^ ]* restore --watch' && echo "${process#/proc/}"
    done || true
}
assay machine --json >machine.json
control=/sys/devices/system/cpu/smt/control
online=/sys/devices/system/cpu/online
assay smt table --quick --force --only syscall.getpid --budget 10m --visit-limit 2m --out killed-out >said-killed 2>&1 &
killed=$!
# Held while its watchdog is looked for, which takes a while here; SMT must still be off once it is
# held.
while true; do
    kill -0 $killed 2>/dev/null || { cat said-killed >&2; exit 1; }
    if [ "$(cat $control)" = off ]; then
        kill -STOP $killed
        # Stopped once the kernel says so: the write that it is in ends first.
        until grep -q '(stopped)' /proc/$killed/status; do sleep 0.01; done
        [ "$(cat $control)" = off ] && break
        kill -CONT $killed
    fi
    sleep 0.02
done
kill -9 $(watchdog) $killed
wait $killed || true
cat $control >killed
cat $online >online-killed
assay restore >restored
cat $control >after-restore
cat $online >online-after-restore
rm -rf killed-out

assay smt table --quick --force --only syscall.getpid,ipc.pipe --budget 10m --visit-limit 2m --out out >said 2>&1 &
table=$!
until cases=$(grep -o 'measuring [0-9]* case' said); do
    kill -0 $table 2>/dev/null || { cat said >&2; exit 1; }
    sleep 0.2
done
cases=${cases//[^0-9]/}
until [ "$(grep -hc '^{"visit"' out/*.jsonl)" -ge "$cases" ]; do
    kill -0 $table 2>/dev/null || break
    sleep 0.2
done
kill -TERM $table 2>/dev/null || true
wait $table || true
cat $control >after
cat $online >online-after
