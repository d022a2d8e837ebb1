package assay.nexmark;

import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.table.data.RowData;

/**
 * Emits the events of one subtask when they are due. Short waits are slept in place, which costs
 * one wake-up per tick; for longer ones the task's thread is given back to Flink.
 */
final class NexmarkReader implements SourceReader<RowData, NexmarkSource.Share> {
    /** Events between two looks at the clock and at Flink's mailbox. */
    private static final int BATCH = 128;

    /** Longest sleep in place, in nanoseconds: by so much a cancel may be held up. */
    private static final long LONGEST_SLEEP = 20 * Pacer.TICK;

    private static final long LONGEST_TIMER = 1000 * Pacer.TICK;

    private final SourceReaderContext context;
    private final Schedule schedule;
    private final Generator generator;
    private final Event event = new Event();
    private final EventRow row = new EventRow(event);
    private final boolean together;
    private final long events;
    private final CompletableFuture<Void> assigned = new CompletableFuture<>();

    private NexmarkSource.Share share;
    private volatile Pacer pacer;
    private long startMillis;
    private long next;
    private int stride;
    private Pack pack;
    private long limit = Long.MAX_VALUE;

    NexmarkReader(
            SourceReaderContext context,
            Schedule schedule,
            Generator generator,
            boolean together,
            long events) {
        this.context = context;
        this.schedule = schedule;
        this.generator = generator;
        this.together = together;
        this.events = events;
    }

    @Override
    public void start() {
        Report report = new Report(context.getIndexOfSubtask(), schedule.steps.size(), () -> pacer);
        context.metricGroup().gauge(Report.NAME, report);
    }

    @Override
    public void addSplits(List<NexmarkSource.Share> shares) {
        if (shares.size() != 1 || share != null) {
            throw new IllegalStateException(
                    "a Nexmark source cannot be restored with another parallelism");
        }
        share = shares.get(0);
        startMillis = share.startMillis;
        stride = share.parallelism;
        next = share.subtask + share.count * stride;
        assigned.complete(null);
    }

    @Override
    public InputStatus pollNext(ReaderOutput<RowData> output) {
        Pacer pacer = this.pacer;
        if (pacer == null) {
            if (share == null) {
                return InputStatus.NOTHING_AVAILABLE;
            }
            pacer = begin();
        }
        int due = pacer.due(BATCH);
        if (pack != null && pacer.count() + due > limit) {
            limit = pack.limit();
            if (pacer.count() + due > limit) {
                LockSupport.parkNanos(Pacer.TICK);
                return InputStatus.MORE_AVAILABLE;
            }
        }
        for (int i = 0; i < due; i++) {
            if (next >= events) {
                return InputStatus.END_OF_INPUT;
            }
            generator.fill(next, event);
            output.collect(row);
            next += stride;
            pacer.emitted();
        }
        if (due == BATCH) {
            return InputStatus.MORE_AVAILABLE;
        }
        long wait = pacer.waitNanos();
        if (wait > LONGEST_SLEEP) {
            return InputStatus.NOTHING_AVAILABLE;
        }
        if (wait > 0) {
            LockSupport.parkNanos(wait);
        }
        return InputStatus.MORE_AVAILABLE;
    }

    private Pacer begin() {
        Pacer begun =
                new Pacer(schedule, stride, System::nanoTime, share.count, share.measured);
        long nowMillis = System.currentTimeMillis();
        if (startMillis == 0) {
            startMillis = nowMillis;
        }
        if (together) {
            pack = Pack.of(job());
            limit = 0;
            begun.goWith(pack);
            pack.join(share.subtask, begun);
        }
        begun.start(TimeUnit.MILLISECONDS.toNanos(Math.max(0, nowMillis - startMillis)));
        pacer = begun;
        return begun;
    }

    private String job() {
        return context.metricGroup().getAllVariables().get("<job_id>");
    }

    @Override
    public CompletableFuture<Void> isAvailable() {
        Pacer pacer = this.pacer;
        if (pacer == null) {
            return assigned;
        }
        long wait = pacer.waitNanos();
        if (wait == 0) {
            return CompletableFuture.completedFuture(null);
        }
        CompletableFuture<Void> due = new CompletableFuture<>();
        if (wait == Long.MAX_VALUE) {
            return due;
        }
        return due.completeOnTimeout(null, Math.min(wait, LONGEST_TIMER), TimeUnit.NANOSECONDS);
    }

    @Override
    public List<NexmarkSource.Share> snapshotState(long checkpoint) {
        if (share == null) {
            return Collections.emptyList();
        }
        Pacer pacer = this.pacer;
        if (pacer == null) {
            return Collections.singletonList(share);
        }
        return Collections.singletonList(
                new NexmarkSource.Share(
                        share.subtask,
                        share.parallelism,
                        pacer.count(),
                        startMillis,
                        pacer.measured()));
    }

    @Override
    public void notifyNoMoreSplits() {
        // The one share never ends.
    }

    @Override
    public void close() {
        if (pack != null) {
            Pack.leave(job(), share.subtask);
        }
    }
}
