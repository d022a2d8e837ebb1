package assay.nexmark;

import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.Supplier;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.runtime.util.EnvironmentInformation;

/**
 * The gauge {@code assay}: where the source stands in its schedule and how busy its process and
 * machine are, as one JSON object taken when Flink asks. Fields that need /proc are left out where
 * there is none.
 */
final class Report implements Gauge<String> {
    static final String NAME = "assay";

    /** A reading that took longer than this many nanoseconds is tried again. */
    private static final long TIGHT = 2_000_000;

    private static final int TRIES = 5;

    /** Ticks per second in which Linux reports CPU time to user space, on every architecture. */
    private static final int HERTZ = 100;

    private static final Path STAT = Path.of("/proc/stat");
    private static final Path SELF_STAT = Path.of("/proc/self/stat");
    private static final Path SELF_STATUS = Path.of("/proc/self/status");
    private static final Path HOSTNAME = Path.of("/proc/sys/kernel/hostname");
    private static final String ALLOWED = "Cpus_allowed_list:";

    private final Supplier<Pacer> pacer;
    private final String head;
    private final int steps;

    /** @param pacer gives null before the source starts */
    Report(int subtask, int steps, Supplier<Pacer> pacer) {
        this.pacer = pacer;
        this.steps = steps;
        this.head =
                "{\"v\":1,\"host\":"
                        + quote(host())
                        + ",\"pid\":"
                        + ProcessHandle.current().pid()
                        + ",\"subtask\":"
                        + subtask;
    }

    @Override
    public String getValue() {
        Reading best = null;
        for (int i = 0; i < TRIES; i++) {
            Reading reading = new Reading(pacer.get());
            if (best == null || reading.spanNanos < best.spanNanos) {
                best = reading;
            }
            if (best.spanNanos <= TIGHT) {
                break;
            }
        }
        return json(best);
    }

    /** All that changes, read as closely together as can be: the count last. */
    private static final class Reading {
        final String stat;
        final String selfStat;
        final Pacer.Sample sample;
        final long nanos;
        final long millis;
        final long spanNanos;

        Reading(Pacer pacer) {
            long begin = System.nanoTime();
            stat = read(STAT);
            selfStat = read(SELF_STAT);
            sample = pacer == null ? null : pacer.sample();
            nanos = sample == null ? System.nanoTime() : sample.nanos;
            millis = System.currentTimeMillis();
            spanNanos = System.nanoTime() - begin;
        }
    }

    private String json(Reading reading) {
        Pacer.Sample sample = reading.sample;
        StringBuilder out = new StringBuilder(512).append(head);
        out.append(",\"step\":").append(sample == null ? -1 : sample.step);
        out.append(",\"steps\":").append(steps);
        double target = sample == null ? 0 : sample.target;
        out.append(",\"target\":").append(String.format(Locale.ROOT, "%.3f", target));
        out.append(",\"nanos\":").append(reading.nanos);
        out.append(",\"millis\":").append(reading.millis);
        out.append(",\"span_ns\":").append(reading.spanNanos);
        out.append(",\"step_nanos\":").append(sample == null ? 0 : sample.stepNanos);
        out.append(",\"count\":").append(sample == null ? 0 : sample.count);
        out.append(",\"late_ns\":").append(sample == null ? 0 : sample.lateNanos);
        if (reading.selfStat != null) {
            out.append(",\"process_ticks\":").append(processTicks(reading.selfStat));
        }
        out.append(",\"hz\":").append(HERTZ);
        String allowed = allowed(read(SELF_STATUS));
        if (allowed != null) {
            out.append(",\"allowed\":").append(quote(allowed));
        }
        if (reading.stat != null) {
            out.append(",\"cpus\":");
            cpus(reading.stat, out);
        }
        out.append(",\"gc\":[");
        String comma = "";
        long collecting = 0;
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            out.append(comma).append(quote(bean.getName()));
            collecting += Math.max(0, bean.getCollectionTime());
            comma = ",";
        }
        out.append("],\"gc_ms\":").append(collecting);
        out.append(",\"java\":").append(quote(System.getProperty("java.version")));
        out.append(",\"flink\":").append(quote(EnvironmentInformation.getVersion()));
        return out.append('}').toString();
    }

    /** User and system time of a process out of its /proc/PID/stat, in ticks. */
    static long processTicks(String stat) {
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
    }

    /** The list of CPUs out of a /proc/PID/status, or null. */
    static String allowed(String status) {
        int at = status == null ? -1 : status.indexOf(ALLOWED);
        if (at < 0) {
            return null;
        }
        int end = status.indexOf('\n', at);
        return status.substring(at + ALLOWED.length(), end < 0 ? status.length() : end).trim();
    }

    /** Appends [[cpu, busy, idle, steal], ...] in ticks out of /proc/stat. */
    static void cpus(String stat, StringBuilder out) {
        out.append('[');
        String comma = "";
        for (String line : stat.split("\n")) {
            if (!line.startsWith("cpu")) {
                break;
            }
            String[] fields = line.split(" +");
            if (fields[0].length() == 3 || fields.length < 9) {
                continue;
            }
            long[] ticks = new long[9];
            for (int i = 1; i < ticks.length; i++) {
                ticks[i] = Long.parseLong(fields[i]);
            }
            out.append(comma).append('[').append(fields[0], 3, fields[0].length());
            out.append(',').append(ticks[1] + ticks[2] + ticks[3] + ticks[6] + ticks[7]);
            out.append(',').append(ticks[4] + ticks[5]);
            out.append(',').append(ticks[8]).append(']');
            comma = ",";
        }
        out.append(']');
    }

    /** The text as a JSON string. */
    static String quote(String text) {
        StringBuilder out = new StringBuilder(text.length() + 2).append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    private static String host() {
        String name = read(HOSTNAME);
        if (name != null) {
            return name.trim();
        }
        try {
            return InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return "unknown";
        }
    }

    private static String read(Path path) {
        try {
            return new String(Files.readAllBytes(path), StandardCharsets.ISO_8859_1);
        } catch (IOException e) {
            return null;
        }
    }
}
