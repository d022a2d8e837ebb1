package assay.nexmark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.table.data.RowData;

/**
 * A source of Nexmark events that keeps its own schedule. Of P subtasks, subtask i emits the event
 * numbers i, i + P, i + 2P and so on. After the last step it stays idle until the job is cancelled,
 * unless its events are limited.
 */
public final class NexmarkSource implements Source<RowData, NexmarkSource.Share, Void> {
    private static final long serialVersionUID = 1L;

    private final String schedule;
    private final long seed;
    private final boolean together;
    private final long events;

    /**
     * @param schedule see {@link Schedule}
     * @param together whether subtasks stay together, see {@link Pack}
     * @param events the number of events after which it ends, or {@link Long#MAX_VALUE}
     * @throws IllegalArgumentException if the schedule cannot be used
     */
    public NexmarkSource(String schedule, long seed, boolean together, long events) {
        Schedule.parse(schedule);
        this.schedule = schedule;
        this.seed = seed;
        this.together = together;
        this.events = events;
    }

    @Override
    public Boundedness getBoundedness() {
        return events == Long.MAX_VALUE
                ? Boundedness.CONTINUOUS_UNBOUNDED
                : Boundedness.BOUNDED;
    }

    @Override
    public SourceReader<RowData, Share> createReader(SourceReaderContext context) {
        return new NexmarkReader(
                context, Schedule.parse(schedule), new Generator(seed), together, events);
    }

    @Override
    public SplitEnumerator<Share, Void> createEnumerator(SplitEnumeratorContext<Share> context) {
        return new Shares(context, true);
    }

    @Override
    public SplitEnumerator<Share, Void> restoreEnumerator(
            SplitEnumeratorContext<Share> context, Void none) {
        return new Shares(context, false);
    }

    @Override
    public SimpleVersionedSerializer<Share> getSplitSerializer() {
        return new ShareSerializer();
    }

    @Override
    public SimpleVersionedSerializer<Void> getEnumeratorCheckpointSerializer() {
        return new NothingSerializer();
    }

    /** One subtask's share of the stream, and how far it came. */
    public static final class Share implements SourceSplit {
        final int subtask;
        final int parallelism;

        /** Events emitted. */
        final long count;

        /** Wall clock at the first event, in milliseconds since 1970; 0 before. */
        final long startMillis;

        /** Events per second of this subtask in the last {@code max} step; 0 if there was none. */
        final double measured;

        Share(int subtask, int parallelism, long count, long startMillis, double measured) {
            this.subtask = subtask;
            this.parallelism = parallelism;
            this.count = count;
            this.startMillis = startMillis;
            this.measured = measured;
        }

        @Override
        public String splitId() {
            return subtask + "/" + parallelism;
        }
    }

    /** Gives every subtask its share once; a restored subtask has it in its own state. */
    private static final class Shares implements SplitEnumerator<Share, Void> {
        private final SplitEnumeratorContext<Share> context;
        private final Map<Integer, Share> open = new HashMap<>();

        Shares(SplitEnumeratorContext<Share> context, boolean fresh) {
            this.context = context;
            int parallelism = fresh ? context.currentParallelism() : 0;
            for (int subtask = 0; subtask < parallelism; subtask++) {
                open.put(subtask, new Share(subtask, parallelism, 0, 0, 0));
            }
        }

        @Override
        public void start() {
            // Readers announce themselves.
        }

        @Override
        public void addReader(int subtask) {
            Share share = open.remove(subtask);
            if (share != null) {
                context.assignSplit(share, subtask);
            }
        }

        @Override
        public void addSplitsBack(List<Share> shares, int subtask) {
            for (Share share : shares) {
                open.put(subtask, share);
            }
            if (context.registeredReaders().containsKey(subtask)) {
                addReader(subtask);
            }
        }

        @Override
        public void handleSplitRequest(int subtask, String host) {
            // A share is given when the reader registers, without a request.
        }

        @Override
        public Void snapshotState(long checkpoint) {
            return null;
        }

        @Override
        public void close() {
            // Holds nothing.
        }
    }

    private static final class ShareSerializer implements SimpleVersionedSerializer<Share> {
        private static final int BYTES = 2 * Integer.BYTES + 3 * Long.BYTES;

        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(Share share) {
            return ByteBuffer.allocate(BYTES)
                    .putInt(share.subtask)
                    .putInt(share.parallelism)
                    .putLong(share.count)
                    .putLong(share.startMillis)
                    .putDouble(share.measured)
                    .array();
        }

        @Override
        public Share deserialize(int version, byte[] bytes) throws IOException {
            if (version != 1 || bytes.length != BYTES) {
                throw new IOException("not a Nexmark share: version " + version);
            }
            ByteBuffer in = ByteBuffer.wrap(bytes);
            return new Share(
                    in.getInt(), in.getInt(), in.getLong(), in.getLong(), in.getDouble());
        }
    }

    private static final class NothingSerializer implements SimpleVersionedSerializer<Void> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(Void none) {
            return new byte[0];
        }

        @Override
        public Void deserialize(int version, byte[] bytes) {
            return null;
        }
    }
}
