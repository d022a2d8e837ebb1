package assay.nexmark;

import java.math.BigDecimal;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs every query on a cluster in this process, over events that end, and compares its rows with
 * an answer that is computed without Flink. Needs a Flink distribution on the class path; {@code
 * crates/cli/tests/it/nexmark.rs} runs it. Ends with 1 where a row is wrong.
 */
final class Answers {
    private static final int PARALLELISM = 3;
    private static final long SEED = 7;

    /** Half a minute of event time, and few events for the queries whose rows are as many. */
    private static final long EVENTS = 300_000;

    private static final long FEW_EVENTS = 10_000;
    private static final long SIZE = 10_000;
    private static final long SLIDE = 2_000;

    private Answers() {}

    public static void main(String[] args) throws Exception {
        boolean right = true;
        for (Query query : Query.values()) {
            if (args.length == 0 || args[0].equals(Job.name(query))) {
                right &= check(query);
            }
        }
        // Threads of a cluster that ended may linger.
        System.exit(right ? 0 : 1);
    }

    private static boolean check(Query query) throws Exception {
        long events = query.hasWindows() ? EVENTS : FEW_EVENTS;
        TableEnvironment tables = Job.tables(PARALLELISM, Job.name(query));
        Job.open(
                tables,
                NexmarkTableFactory.table("max@1000", SEED, query.hasWindows()).toBuilder()
                        .option(NexmarkTableFactory.EVENTS, events)
                        .build());
        String plan = tables.explainSql(query.select);
        int sources = plan.substring(plan.indexOf("Execution Plan")).split("TableSourceScan\\(").length - 1;
        List<String> found = new ArrayList<>();
        try (CloseableIterator<Row> rows = tables.executeSql(query.select).collect()) {
            while (rows.hasNext()) {
                Row row = rows.next();
                String text = row.getKind() == RowKind.INSERT ? "" : row.getKind() + " ";
                for (int i = 0; i < row.getArity(); i++) {
                    text += row.getField(i) + "|";
                }
                found.add(text);
            }
        }
        List<String> expected = new Plain(query, events).rows();
        Collections.sort(found);
        Collections.sort(expected);
        boolean right = found.equals(expected) && !expected.isEmpty() && sources == 1;
        System.out.printf(
                "%s %s: %d rows, %d expected, %d source%n",
                Job.name(query), right ? "right" : "WRONG", found.size(), expected.size(), sources);
        if (!right) {
            List<String> more = new ArrayList<>(found);
            expected.forEach(more::remove);
            found.forEach(expected::remove);
            System.out.println("  too many: " + more.subList(0, Math.min(5, more.size())));
            System.out.println("  missing: " + expected.subList(0, Math.min(5, expected.size())));
        }
        return right;
    }

    /** The answer of a query by its definition, over the events in their order. */
    private static final class Plain {
        private final Query query;
        private final List<String> rows = new ArrayList<>();
        private final Map<Long, Map<Long, Long>> counts = new TreeMap<>();
        private final Map<Long, Long> highest = new HashMap<>();
        private final Map<Long, List<String>> best = new HashMap<>();
        private final Map<Long, Map<Long, String>> people = new HashMap<>();
        private final Map<Long, Set<Long>> sellers = new HashMap<>();
        private final Map<Long, long[]> sessions = new HashMap<>();

        Plain(Query query, long events) {
            this.query = query;
            Generator generator = new Generator(SEED);
            Event event = new Event();
            for (long n = 0; n < events; n++) {
                generator.fill(n, event);
                long window = event.dateTime - event.dateTime % SIZE;
                if (event.type == Event.PERSON) {
                    people.computeIfAbsent(window, any -> new HashMap<>())
                            .put(event.id, event.name.toString());
                } else if (event.type == Event.AUCTION) {
                    sellers.computeIfAbsent(window, any -> new HashSet<>()).add(event.seller);
                } else {
                    bid(event, window);
                }
            }
        }

        private void bid(Event event, long window) {
            String begin = event.auction + "|" + event.bidder + "|" + event.price + "|";
            String end = time(event.dateTime) + "|" + event.extra + "|";
            switch (query) {
                case Q0:
                    rows.add(begin + end);
                    break;
                case Q1:
                    BigDecimal price = new BigDecimal("0.908").multiply(BigDecimal.valueOf(event.price));
                    rows.add(event.auction + "|" + event.bidder + "|" + price + "|" + end);
                    break;
                case Q2:
                    if (event.auction % 123 == 0) {
                        rows.add(event.auction + "|" + event.price + "|");
                    }
                    break;
                case Q5:
                    long first = event.dateTime - event.dateTime % SLIDE;
                    for (long start = first; start > event.dateTime - SIZE; start -= SLIDE) {
                        counts.computeIfAbsent(start, any -> new HashMap<>())
                                .merge(event.auction, 1L, Long::sum);
                    }
                    break;
                case Q7:
                    long most = highest.merge(window, event.price, Math::max);
                    if (most == event.price) {
                        List<String> all = best.computeIfAbsent(window, any -> new ArrayList<>());
                        all.removeIf(row -> !row.contains("|" + most + "|"));
                        all.add(begin + end);
                    }
                    break;
                case Q11:
                    long[] session = sessions.get(event.bidder);
                    if (session == null || event.dateTime - session[2] > SIZE) {
                        session(event.bidder, session);
                        session = new long[] {0, event.dateTime, 0};
                        sessions.put(event.bidder, session);
                    }
                    session[0]++;
                    session[2] = event.dateTime;
                    break;
                default:
            }
        }

        private void session(long bidder, long[] session) {
            if (session != null) {
                String times = time(session[1]) + "|" + time(session[2] + SIZE) + "|";
                rows.add(bidder + "|" + session[0] + "|" + times);
            }
        }

        List<String> rows() {
            for (Map<Long, Long> window : counts.values()) {
                long most = Collections.max(window.values());
                window.forEach(
                        (auction, num) -> {
                            if (num == most) {
                                rows.add(auction + "|" + num + "|");
                            }
                        });
            }
            best.values().forEach(rows::addAll);
            if (query == Query.Q8) {
                people.forEach(
                        (window, came) ->
                                came.forEach(
                                        (id, name) -> {
                                            if (sellers.getOrDefault(window, Set.of()).contains(id)) {
                                                rows.add(id + "|" + name + "|" + time(window) + "|");
                                            }
                                        }));
            }
            sessions.forEach(this::session);
            return rows;
        }

        private static LocalDateTime time(long millis) {
            return LocalDateTime.ofEpochSecond(
                    millis / 1000, (int) (millis % 1000) * 1_000_000, ZoneOffset.UTC);
        }
    }
}
