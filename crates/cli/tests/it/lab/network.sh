# Two network namespaces and a pair of virtual interfaces between them. `trial NAME BENCHMARKS
# BUDGET [OPTION...]` measures from one to the other and leaves NAME.json, NAME.said, NAME.status;
# `shape OPTIONS` is what the way there does.
ip=/bin/ip
tc=/bin/tc
$ip netns add near
$ip netns add far
$ip link add near0 netns near type veth peer name far0 netns far
$ip -n near addr add 10.9.0.1/24 dev near0
$ip -n far addr add 10.9.0.2/24 dev far0
for end in near far; do
    $ip -n $end link set lo up
    $ip -n $end link set ${end}0 up
done
export ASSAY_TOKEN=a-token-for-the-lab-only

shape() {
    $tc -n near qdisc replace dev near0 root netem "$@"
}

# window BYTES: the largest that TCP takes by itself at either end.
window() {
    for end in near far; do
        $ip netns exec $end sysctl -q -w net.ipv4.tcp_rmem="4096 $1 $1" net.ipv4.tcp_wmem="4096 $1 $1"
    done
}

# trial NAME BENCHMARKS BUDGET [OPTION...]
trial() {
    name=$1
    only=$2
    budget=$3
    shift 3
    $ip netns exec far assay serve --bind 10.9.0.2 --for 10m >"$name.served" 2>&1 &
    server=$!
    until grep -q 'assay serves' "$name.served"; do
        kill -0 $server
        sleep 0.2
    done
    status=0
    $ip netns exec near assay run --quick --force --only "$only" --to 10.9.0.2 --out "out-$name" \
        --budget "$budget" "$@" --json >"$name.json" 2>"$name.said" || status=$?
    echo $status >"$name.status"
    rm -rf "out-$name"
    kill $server
    wait $server || true
}
