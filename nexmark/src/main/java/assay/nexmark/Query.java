package assay.nexmark;

/**
 * The queries of Nexmark that need no store beside Flink, over the views {@code person}, {@code
 * auction} and {@code bid}. Windows are table functions; their state is bounded, at any rate, by
 * the events of some windows.
 */
enum Query {
    /** All bids. */
    Q0(
            "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING",
            "SELECT auction, bidder, price, `dateTime`, extra FROM bid"),

    /** All bids, their prices in another currency. */
    Q1(
            "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` TIMESTAMP(3), extra STRING",
            "SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid"),

    /** The bids on every 123rd auction. */
    Q2(
            "auction BIGINT, price BIGINT",
            "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0"),

    /** Every 2 s the auctions with the most bids of the last 10 s. */
    Q5(
            "auction BIGINT, num BIGINT",
            "SELECT counts.auction, counts.num FROM (" + Part.COUNTS + ") AS counts"
                    + " JOIN (SELECT MAX(num) AS most, window_start, window_end"
                    + " FROM (" + Part.COUNTS + ") GROUP BY window_start, window_end) AS top"
                    + " ON counts.window_start = top.window_start"
                    + " AND counts.window_end = top.window_end AND counts.num >= top.most"),

    /**
     * The bids of the highest price in each 10 s. Nexmark joins by BETWEEN on the window's end, for
     * which Flink keeps every bid for ever; a join inside the window has the same rows, but for a
     * bid at the very instant of the end.
     */
    Q7(
            "auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING",
            "SELECT bids.auction, bids.bidder, bids.price, bids.`dateTime`, bids.extra"
                    + " FROM (SELECT auction, bidder, price, `dateTime`, extra, window_start, window_end"
                    + " FROM " + Part.tumbling("bid") + ") AS bids"
                    + " JOIN (SELECT MAX(price) AS most, window_start, window_end"
                    + " FROM " + Part.tumbling("bid") + " GROUP BY window_start, window_end) AS top"
                    + " ON bids.price = top.most AND bids.window_start = top.window_start"
                    + " AND bids.window_end = top.window_end"),

    /** The persons who came and sold in the same 10 s. */
    Q8(
            "id BIGINT, name STRING, starttime TIMESTAMP(3)",
            "SELECT people.id, people.name, people.window_start AS starttime"
                    + " FROM (SELECT id, name, window_start, window_end"
                    + " FROM " + Part.tumbling("person")
                    + " GROUP BY id, name, window_start, window_end) AS people"
                    + " JOIN (SELECT seller, window_start, window_end"
                    + " FROM " + Part.tumbling("auction")
                    + " GROUP BY seller, window_start, window_end) AS sellers"
                    + " ON people.id = sellers.seller AND people.window_start = sellers.window_start"
                    + " AND people.window_end = sellers.window_end"),

    /** How many bids each bidder made until a pause of 10 s, and from when to when. */
    Q11(
            "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)",
            "SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime"
                    + " FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`),"
                    + " INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end");

    /** The views that the queries read, out of the table {@code nexmark}. */
    static final String[] VIEWS = {
        "CREATE TEMPORARY VIEW person AS SELECT person.id, person.name, `dateTime` FROM nexmark"
                + " WHERE event_type = 0",
        "CREATE TEMPORARY VIEW auction AS SELECT auction.id, auction.seller, `dateTime` FROM nexmark"
                + " WHERE event_type = 1",
        "CREATE TEMPORARY VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel,"
                + " bid.url, `dateTime`, bid.extra FROM nexmark WHERE event_type = 2"
    };

    /** The sink's columns. */
    final String columns;

    /** The query itself. */
    final String select;

    Query(String columns, String select) {
        this.columns = columns;
        this.select = select;
    }

    /**
     * Whether rows meet others of their window, so that they are exchanged between subtasks and
     * kept.
     */
    boolean hasWindows() {
        return compareTo(Q2) > 0;
    }

    private static final class Part {
        static final String COUNTS =
                "SELECT auction, COUNT(*) AS num, window_start, window_end FROM TABLE(HOP(TABLE bid,"
                        + " DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
                        + " GROUP BY auction, window_start, window_end";

        static String tumbling(String table) {
            return "TABLE(TUMBLE(TABLE " + table
                    + ", DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))";
        }
    }
}
