package assay.nexmark;

import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RawValueData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.types.RowKind;
import org.apache.flink.types.variant.Variant;

/**
 * An {@link Event} seen as a row of the table (event_type, person, auction, bid). It reads the
 * event's fields in place: no boxed numbers, no row objects per event.
 */
final class EventRow extends View {
    private final RowData person;
    private final RowData auction;
    private final RowData bid;

    EventRow(Event event) {
        super(event, 4);
        person = new PersonView(event);
        auction = new AuctionView(event);
        bid = new BidView(event);
    }

    @Override
    public boolean isNullAt(int position) {
        return position != 0 && position != event.type + 1;
    }

    @Override
    public int getInt(int position) {
        return event.type;
    }

    @Override
    public RowData getRow(int position, int fields) {
        switch (position) {
            case 1:
                return person;
            case 2:
                return auction;
            default:
                return bid;
        }
    }

    private static final class PersonView extends View {
        PersonView(Event event) {
            super(event, 8);
        }

        @Override
        public long getLong(int position) {
            return event.id;
        }

        @Override
        public StringData getString(int position) {
            switch (position) {
                case 1:
                    return event.name;
                case 2:
                    return event.emailAddress;
                case 3:
                    return event.creditCard;
                case 4:
                    return event.city;
                case 5:
                    return event.state;
                default:
                    return event.extra;
            }
        }
    }

    private static final class AuctionView extends View {
        AuctionView(Event event) {
            super(event, 10);
        }

        @Override
        public long getLong(int position) {
            switch (position) {
                case 0:
                    return event.id;
                case 3:
                    return event.initialBid;
                case 4:
                    return event.reserve;
                case 7:
                    return event.seller;
                default:
                    return event.category;
            }
        }

        @Override
        public StringData getString(int position) {
            switch (position) {
                case 1:
                    return event.itemName;
                case 2:
                    return event.description;
                default:
                    return event.extra;
            }
        }

        @Override
        public TimestampData getTimestamp(int position, int precision) {
            return TimestampData.fromEpochMillis(position == 5 ? event.dateTime : event.expires);
        }
    }

    private static final class BidView extends View {
        BidView(Event event) {
            super(event, 7);
        }

        @Override
        public long getLong(int position) {
            switch (position) {
                case 0:
                    return event.auction;
                case 1:
                    return event.bidder;
                default:
                    return event.price;
            }
        }

        @Override
        public StringData getString(int position) {
            switch (position) {
                case 3:
                    return event.channel;
                case 4:
                    return event.url;
                default:
                    return event.extra;
            }
        }
    }
}

/** What the rows of an event have in common: always an insert, and few kinds of fields. */
abstract class View implements RowData {
    final Event event;
    private final int arity;

    View(Event event, int arity) {
        this.event = event;
        this.arity = arity;
    }

    @Override
    public int getArity() {
        return arity;
    }

    @Override
    public RowKind getRowKind() {
        return RowKind.INSERT;
    }

    @Override
    public void setRowKind(RowKind kind) {
        if (kind != RowKind.INSERT) {
            throw absent(kind.name());
        }
    }

    @Override
    public boolean isNullAt(int position) {
        return false;
    }

    @Override
    public TimestampData getTimestamp(int position, int precision) {
        return TimestampData.fromEpochMillis(event.dateTime);
    }

    @Override
    public long getLong(int position) {
        throw absent("BIGINT");
    }

    @Override
    public StringData getString(int position) {
        throw absent("STRING");
    }

    @Override
    public int getInt(int position) {
        throw absent("INT");
    }

    @Override
    public RowData getRow(int position, int fields) {
        throw absent("ROW");
    }

    @Override
    public boolean getBoolean(int position) {
        throw absent("BOOLEAN");
    }

    @Override
    public byte getByte(int position) {
        throw absent("TINYINT");
    }

    @Override
    public short getShort(int position) {
        throw absent("SMALLINT");
    }

    @Override
    public float getFloat(int position) {
        throw absent("FLOAT");
    }

    @Override
    public double getDouble(int position) {
        throw absent("DOUBLE");
    }

    @Override
    public DecimalData getDecimal(int position, int precision, int scale) {
        throw absent("DECIMAL");
    }

    @Override
    public <T> RawValueData<T> getRawValue(int position) {
        throw absent("RAW");
    }

    @Override
    public byte[] getBinary(int position) {
        throw absent("BINARY");
    }

    @Override
    public ArrayData getArray(int position) {
        throw absent("ARRAY");
    }

    @Override
    public MapData getMap(int position) {
        throw absent("MAP");
    }

    @Override
    public Variant getVariant(int position) {
        throw absent("VARIANT");
    }

    private static UnsupportedOperationException absent(String what) {
        return new UnsupportedOperationException("a Nexmark row has no " + what);
    }
}
