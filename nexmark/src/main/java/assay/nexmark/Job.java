package assay.nexmark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.CoreOptions;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.config.ExecutionConfigOptions;

/**
 * Submits one Nexmark query and returns: {@code --query q0|q1|q2 --schedule TEXT [--seed N]
 * [--parallelism P]}.
 */
public final class Job {
    private static final String USAGE =
            "expected --query q0|q1|q2 --schedule RATE@SECONDS;... [--seed N] [--parallelism P]";
    private static final List<String> NAMES =
            Arrays.asList("--query", "--schedule", "--seed", "--parallelism");
    private static final int MOST_SUBTASKS = 1 << 15;

    private static final String BIDS =
            "CREATE TEMPORARY VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel,"
                    + " bid.url, `dateTime`, bid.extra FROM nexmark WHERE event_type = 2";

    final String query;
    final String schedule;
    final long seed;
    final int parallelism;

    /** @throws IllegalArgumentException saying which argument is wrong and what is expected */
    Job(String... args) {
        Map<String, String> given = new HashMap<>();
        for (int i = 0; i < args.length; i += 2) {
            if (!NAMES.contains(args[i])) {
                throw bad("unknown argument '" + args[i] + "'");
            }
            if (i + 1 == args.length) {
                throw bad(args[i] + " has no value");
            }
            if (given.put(args[i], args[i + 1]) != null) {
                throw bad(args[i] + " is given twice");
            }
        }
        query = given.get("--query");
        if (query == null) {
            throw bad("--query is missing");
        }
        statements(query);
        schedule = given.get("--schedule");
        if (schedule == null) {
            throw bad("--schedule is missing");
        }
        Schedule.parse(schedule);
        seed = number("--seed", given.getOrDefault("--seed", "1"), Long.MIN_VALUE, Long.MAX_VALUE);
        parallelism =
                (int) number("--parallelism", given.getOrDefault("--parallelism", "1"), 1, MOST_SUBTASKS);
    }

    /** Submits the query; the job then runs until it is cancelled. */
    public static void main(String[] args) {
        new Job(args).submit();
    }

    private void submit() {
        Configuration configuration = new Configuration();
        configuration.set(CoreOptions.DEFAULT_PARALLELISM, parallelism);
        configuration.set(
                ExecutionConfigOptions.TABLE_EXEC_RESOURCE_DEFAULT_PARALLELISM, parallelism);
        configuration.set(PipelineOptions.NAME, "assay nexmark " + query);
        TableEnvironment tables =
                TableEnvironment.create(
                        EnvironmentSettings.newInstance()
                                .inStreamingMode()
                                .withConfiguration(configuration)
                                .build());
        tables.createTemporaryTable("nexmark", NexmarkTableFactory.table(schedule, seed));
        tables.executeSql(BIDS);
        for (String statement : statements(query)) {
            tables.executeSql(statement);
        }
    }

    /** The sink and the insert of a query. */
    static String[] statements(String query) {
        switch (query) {
            case "q0":
                return new String[] {
                    sink("auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING"),
                    "INSERT INTO sink SELECT auction, bidder, price, `dateTime`, extra FROM bid"
                };
            case "q1":
                return new String[] {
                    sink(
                            "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3),"
                                    + " `dateTime` TIMESTAMP(3), extra STRING"),
                    "INSERT INTO sink SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra"
                            + " FROM bid"
                };
            case "q2":
                return new String[] {
                    sink("auction BIGINT, price BIGINT"),
                    "INSERT INTO sink SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0"
                };
            default:
                throw bad("unknown query '" + query + "'");
        }
    }

    private static String sink(String columns) {
        return "CREATE TEMPORARY TABLE sink (" + columns + ") WITH ('connector' = 'blackhole')";
    }

    private static long number(String name, String text, long least, long most) {
        try {
            long value = Long.parseLong(text);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw bad(name + " is not a whole number: '" + text + "'");
        }
        throw bad(name + " must be from " + least + " to " + most + ", not " + text);
    }

    private static IllegalArgumentException bad(String what) {
        return new IllegalArgumentException(what + "; " + USAGE);
    }
}
