package assay.nexmark;

import static org.apache.flink.table.api.DataTypes.BIGINT;
import static org.apache.flink.table.api.DataTypes.FIELD;
import static org.apache.flink.table.api.DataTypes.INT;
import static org.apache.flink.table.api.DataTypes.ROW;
import static org.apache.flink.table.api.DataTypes.STRING;
import static org.apache.flink.table.api.DataTypes.TIMESTAMP;

import java.util.Collections;
import java.util.Set;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;

/** The connector {@code assay-nexmark}: the table of Nexmark events. */
public final class NexmarkTableFactory implements DynamicTableSourceFactory {
    /** Name of the connector. */
    public static final String CONNECTOR = "assay-nexmark";

    /** The rates to walk, see {@link assay.nexmark.Schedule}. */
    public static final ConfigOption<String> SCHEDULE =
            ConfigOptions.key("schedule")
                    .stringType()
                    .noDefaultValue()
                    .withDescription("RATE@SECONDS;... with RATE max, events per second or NN%");

    /** Seed of the events. */
    public static final ConfigOption<Long> SEED =
            ConfigOptions.key("seed")
                    .longType()
                    .defaultValue(1L)
                    .withDescription("The same seed gives the same events.");

    /** Whether subtasks stay together, see {@link assay.nexmark.Pack}. */
    public static final ConfigOption<Boolean> TOGETHER =
            ConfigOptions.key("together")
                    .booleanType()
                    .defaultValue(false)
                    .withDescription("Subtasks of a process wait for the slowest of them.");

    /** Events after which the table ends. */
    public static final ConfigOption<Long> EVENTS =
            ConfigOptions.key("events")
                    .longType()
                    .defaultValue(Long.MAX_VALUE)
                    .withDescription("The number of events; by itself it has no end.");

    private static final DataType PERSON =
            ROW(
                    FIELD("id", BIGINT()),
                    FIELD("name", STRING()),
                    FIELD("emailAddress", STRING()),
                    FIELD("creditCard", STRING()),
                    FIELD("city", STRING()),
                    FIELD("state", STRING()),
                    FIELD("dateTime", TIMESTAMP(3)),
                    FIELD("extra", STRING()));

    private static final DataType AUCTION =
            ROW(
                    FIELD("id", BIGINT()),
                    FIELD("itemName", STRING()),
                    FIELD("description", STRING()),
                    FIELD("initialBid", BIGINT()),
                    FIELD("reserve", BIGINT()),
                    FIELD("dateTime", TIMESTAMP(3)),
                    FIELD("expires", TIMESTAMP(3)),
                    FIELD("seller", BIGINT()),
                    FIELD("category", BIGINT()),
                    FIELD("extra", STRING()));

    private static final DataType BID =
            ROW(
                    FIELD("auction", BIGINT()),
                    FIELD("bidder", BIGINT()),
                    FIELD("price", BIGINT()),
                    FIELD("channel", STRING()),
                    FIELD("url", STRING()),
                    FIELD("dateTime", TIMESTAMP(3)),
                    FIELD("extra", STRING()));

    private static final DataType COLUMNS =
            ROW(
                    FIELD("event_type", INT()),
                    FIELD("person", PERSON),
                    FIELD("auction", AUCTION),
                    FIELD("bid", BID));

    /** The table of events with its event time and watermark. */
    public static TableDescriptor table(String schedule, long seed, boolean together) {
        Schema schema =
                Schema.newBuilder()
                        .fromRowDataType(COLUMNS)
                        .columnByExpression(
                                "dateTime",
                                "CASE WHEN event_type = 0 THEN person.`dateTime`"
                                        + " WHEN event_type = 1 THEN auction.`dateTime`"
                                        + " ELSE bid.`dateTime` END")
                        .watermark("dateTime", "`dateTime` - INTERVAL '4' SECOND")
                        .build();
        return TableDescriptor.forConnector(CONNECTOR)
                .schema(schema)
                .option(SCHEDULE, schedule)
                .option(SEED, seed)
                .option(TOGETHER, together)
                .build();
    }

    @Override
    public String factoryIdentifier() {
        return CONNECTOR;
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
        return Collections.singleton(SCHEDULE);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
        return Set.of(SEED, TOGETHER, EVENTS);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
        FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
        helper.validate();
        DataType columns = context.getPhysicalRowDataType();
        if (!columns.getLogicalType().copy(true).equals(COLUMNS.getLogicalType())) {
            throw new ValidationException(
                    "an " + CONNECTOR + " table has the columns " + COLUMNS + ", not " + columns);
        }
        ReadableConfig options = helper.getOptions();
        try {
            return new Events(
                    new NexmarkSource(
                            options.get(SCHEDULE),
                            options.get(SEED),
                            options.get(TOGETHER),
                            options.get(EVENTS)));
        } catch (IllegalArgumentException e) {
            throw new ValidationException(e.getMessage(), e);
        }
    }

    private static final class Events implements ScanTableSource {
        private final NexmarkSource source;

        Events(NexmarkSource source) {
            this.source = source;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            return SourceProvider.of(source);
        }

        @Override
        public DynamicTableSource copy() {
            return new Events(source);
        }

        @Override
        public String asSummaryString() {
            return "Nexmark events";
        }
    }
}
