//! Networks: two ends and what lies between.

use super::{family, names};

names! { BenchId:
    TCP = "network.tcp",
    UDP = "network.udp",
    ROUND_TRIP = "network.round-trip",
    CONNECT = "network.connect",
    REQUEST = "network.request",
    LOADED = "network.loaded",
    BOTTLENECK = "network.bottleneck",
}

names! { pub mod metric: MetricId:
    BANDWIDTH = "bandwidth",
    LOCAL_BUSY = "local_busy",
    REMOTE_BUSY = "remote_busy",
    LOCAL_SOFTIRQ = "local_softirq",
    REMOTE_SOFTIRQ = "remote_softirq",
    LOCAL_WAIT = "local_wait",
    REMOTE_WAIT = "remote_wait",
    LOCAL_THROTTLED = "local_throttled",
    REMOTE_THROTTLED = "remote_throttled",
    LOCAL_DROPS = "local_drops",
    REMOTE_DROPS = "remote_drops",
    RETRANSMITS = "retransmits",
    DUPLICATES = "duplicates",
    RWND_LIMITED = "rwnd_limited",
    SNDBUF_LIMITED = "sndbuf_limited",
    SENDER_LIMITED_BUSY = "sender_limited_busy",
    CWND = "cwnd",
    RTT = "rtt",
    RTT_MIN = "rtt_min",
    DELIVERY_RATE = "delivery_rate",
    SEND_BUFFER = "send_buffer",
    RECEIVE_BUFFER = "receive_buffer",
    SENT = "sent",
    LOSS = "loss",
    REORDERED = "reordered",
    DUPLICATED = "duplicated",
    LATENCY_P50 = "latency_p50",
    LATENCY_P90 = "latency_p90",
    LATENCY_P99 = "latency_p99",
    LATENCY_P999 = "latency_p999",
    LATENCY_P9999 = "latency_p9999",
    LATENCY_MAX = "latency_max",
    JITTER = "jitter",
    RATE = "rate",
    LATENCY_IDLE_P50 = "latency_idle_p50",
    LOAD = "load",
    LATER = "later",
    GROWTH = "growth",
}

names! { pub mod param: ParamId:
    DIRECTION = "direction",
    CONGESTION = "congestion",
    RATE = "rate",
    STREAMS = "streams",
    BYTES = "bytes",
    PROTOCOL = "protocol",
    DEPTH = "depth",
    ARM = "arm",
}

names! { pub mod rule: RuleId:
    NETWORK_BOTTLENECK = "network-bottleneck",
    NETWORK_SHAPER = "network-shaper",
    NETWORK_WINDOW = "network-window",
    NETWORK_CPU_BOUND = "network-cpu-bound",
    NETWORK_ONE_STREAM = "network-one-stream",
    NETWORK_LOSS = "network-loss",
    NETWORK_OFFLOAD_OFF = "network-offload-off",
    NETWORK_IRQS_ON_ONE_CPU = "network-irqs-on-one-cpu",
    NETWORK_PATH_MTU = "network-path-mtu",
    NETWORK_LOOPBACK = "network-loopback",
}

names! { pub mod probe: probes:
    NETWORK = "probe:network",
    NETWORK_REMOTE = "probe:network-remote",
}

family! { "network" benchmarks: self, metrics: metric, params: param, rules: rule, probes: probe }
