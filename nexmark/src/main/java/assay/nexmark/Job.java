package assay.nexmark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.CoreOptions;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.config.ExecutionConfigOptions;

/**
 * Submits one Nexmark query and returns: {@code --query q0|q1|q2|q5|q7|q8|q11 --schedule TEXT
 * [--seed N] [--parallelism P]}.
 */
public final class Job {
    private static final String USAGE =
            "expected --query q0|q1|q2|q5|q7|q8|q11 --schedule RATE@SECONDS;... [--seed N]"
                    + " [--parallelism P]";
    private static final List<String> NAMES =
            Arrays.asList("--query", "--schedule", "--seed", "--parallelism");
    private static final int MOST_SUBTASKS = 1 << 15;

    final Query query;
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
        query = query(given.get("--query"));
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
        TableEnvironment tables = tables(parallelism, "assay nexmark " + name(query));
        open(tables, NexmarkTableFactory.table(schedule, seed, query.hasWindows()));
        tables.executeSql(
                "CREATE TEMPORARY TABLE sink (" + query.columns + ") WITH ('connector' = 'blackhole')");
        tables.executeSql("INSERT INTO sink " + query.select);
    }

    /** An environment for streams of so many subtasks. */
    static TableEnvironment tables(int parallelism, String name) {
        Configuration configuration = new Configuration();
        configuration.set(CoreOptions.DEFAULT_PARALLELISM, parallelism);
        configuration.set(
                ExecutionConfigOptions.TABLE_EXEC_RESOURCE_DEFAULT_PARALLELISM, parallelism);
        configuration.set(PipelineOptions.NAME, name);
        return TableEnvironment.create(
                EnvironmentSettings.newInstance()
                        .inStreamingMode()
                        .withConfiguration(configuration)
                        .build());
    }

    /** Makes events and their views known to an environment. */
    static void open(TableEnvironment tables, TableDescriptor events) {
        tables.createTemporaryTable("nexmark", events);
        for (String view : Query.VIEWS) {
            tables.executeSql(view);
        }
    }

    static String name(Query query) {
        return query.name().toLowerCase(Locale.ROOT);
    }

    private static Query query(String name) {
        if (name == null) {
            throw bad("--query is missing");
        }
        for (Query query : Query.values()) {
            if (name(query).equals(name)) {
                return query;
            }
        }
        throw bad("unknown query '" + name + "'");
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
