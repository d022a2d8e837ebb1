package assay.nexmark;

import org.apache.flink.core.memory.MemorySegment;
import org.apache.flink.core.memory.MemorySegmentFactory;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.binary.BinaryStringData;

/**
 * One event, filled again for every event number so that a stream of them costs few objects.
 *
 * <p>Only the fields of the event's own {@link #type} hold a meaning. Generated texts live in a
 * buffer of this object and are overwritten by the next event.
 */
public final class Event {
    /** {@link #type} of a new person. */
    public static final int PERSON = 0;

    /** {@link #type} of a new auction. */
    public static final int AUCTION = 1;

    /** {@link #type} of a bid. */
    public static final int BID = 2;

    static final int BUFFER_BYTES = 2048;

    public int type;

    /** Event time in milliseconds since 1970. */
    public long dateTime;

    /** Random letters that bring the event to its size. */
    public StringData extra;

    /** Person or auction: its id. */
    public long id;

    public StringData name;
    public StringData emailAddress;
    public StringData creditCard;
    public StringData city;
    public StringData state;

    public StringData itemName;
    public StringData description;

    /** Auction: first price in cents. */
    public long initialBid;

    /** Auction: least price in cents at which it sells. */
    public long reserve;

    /** Auction: event time in milliseconds since 1970 at which it ends. */
    public long expires;

    public long seller;
    public long category;

    /** Bid: id of the auction. */
    public long auction;

    public long bidder;

    /** Bid: price in cents. */
    public long price;

    public StringData channel;
    public StringData url;

    /**
     * Size in bytes as Nexmark counts it: 8 for a number or a time; a bid's channel and url count
     * 0.
     */
    public int size;

    final byte[] buffer = new byte[BUFFER_BYTES];
    int used;
    private final MemorySegment[] segments = {MemorySegmentFactory.wrap(buffer)};

    /** The text written to the buffer from {@code start} to its present end. */
    StringData text(int start) {
        return BinaryStringData.fromAddress(segments, start, used - start);
    }
}
