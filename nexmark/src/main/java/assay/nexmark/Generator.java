package assay.nexmark;

import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.apache.flink.table.data.StringData;

/**
 * Makes the event of a given number: a pure function of the number and the seed, so the same
 * stream comes out whatever the number of subtasks.
 *
 * <p>Of every 50 numbers the first is a person, the next 3 are auctions and the last 46 are bids.
 * An instance may be used by one thread at a time.
 */
public final class Generator {
    /** Event numbers after which the mix repeats. */
    public static final int CYCLE = 50;

    /** Persons in a cycle. */
    public static final int PERSONS = 1;

    /** Auctions in a cycle. */
    public static final int AUCTIONS = 3;

    /** One choice in this many is not the hot auction. */
    public static final int HOT_AUCTION_RATIO = 2;

    /** One choice in this many is not the hot bidder. */
    public static final int HOT_BIDDER_RATIO = 4;

    /** One choice in this many is not the hot seller. */
    public static final int HOT_SELLER_RATIO = 4;

    /** Auctions that bids choose from. */
    public static final int IN_FLIGHT_AUCTIONS = 100;

    /** Persons that bidders and sellers are chosen from. */
    public static final int ACTIVE_PEOPLE = 1000;

    /** Channels beside the hot ones. */
    public static final int CHANNELS = 10_000;

    /** Id of the first person and of the first auction. */
    public static final long FIRST_ID = 1000;

    /** Mean sizes in bytes, by {@link Event#type}. */
    static final int[] MEAN_SIZE = {200, 500, 100};

    /** Event time of event 0, in milliseconds since 1970. */
    public static final long FIRST_TIME = 1_735_689_600_000L;

    /** Events in one millisecond of event time. */
    public static final int EVENTS_PER_MILLI = 10;

    private static final int HOT_STEP = 100;
    private static final long FIRST_CATEGORY = 10;
    private static final int CATEGORIES = 5;
    private static final int AUCTION_HORIZON_MILLIS =
            IN_FLIGHT_AUCTIONS * CYCLE / AUCTIONS / EVENTS_PER_MILLI;
    private static final double LOG_PRICE_RANGE = 6 * Math.log(10);
    private static final long GAMMA = 0x9E3779B97F4A7C15L;

    private static final byte[] LETTERS = ascii("abcdefghijklmnopqrstuvwxyz aeiou");
    private static final byte[] DIGITS = ascii("0123456789");
    private static final byte[] DOT_COM = ascii(".com");
    private static final byte[][] FIRST_NAMES =
            asciiAll("Ada", "Bela", "Chen", "Dora", "Emil", "Fatima", "Goran", "Hana", "Ivo", "Jana");
    private static final byte[][] LAST_NAMES =
            asciiAll("Abel", "Brandt", "Cruz", "Dumas", "Engel", "Fischer", "Garcia", "Hopper", "Ito");
    private static final StringData[] CITIES =
            texts("Phoenix", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne");
    private static final int[] CITY_BYTES = lengths(CITIES);
    private static final StringData[] STATES =
            texts("AZ", "ID", "OR", "OR", "WA", "WA", "WA", "WY");
    private static final StringData[] HOT_CHANNELS = texts("Google", "Facebook", "Baidu", "Apple");

    private final long seed;
    private final StringData[] hotUrls = new StringData[HOT_CHANNELS.length];
    private final StringData[] channels = new StringData[CHANNELS];
    private final StringData[] urls = new StringData[CHANNELS];
    private long state;

    /** Builds the table of channels, a few milliseconds of work. */
    public Generator(long seed) {
        this.seed = seed;
        Random random = new Random(seed);
        for (int i = 0; i < hotUrls.length; i++) {
            hotUrls[i] = StringData.fromString(url(random, i));
        }
        for (int i = 0; i < CHANNELS; i++) {
            channels[i] = StringData.fromString("channel-" + i);
            urls[i] = StringData.fromString(url(random, i));
        }
    }

    /** Fills {@code event} with the event of number {@code n}, counted from 0. */
    public void fill(long n, Event event) {
        state = mix(seed + GAMMA * (n + 1));
        event.used = 0;
        event.dateTime = FIRST_TIME + n / EVENTS_PER_MILLI;
        int place = (int) (n % CYCLE);
        long cycle = n / CYCLE;
        if (place < PERSONS) {
            person(cycle * PERSONS + place, event);
        } else if (place < PERSONS + AUCTIONS) {
            auction(cycle * AUCTIONS + place - PERSONS, cycle, event);
        } else {
            bid((cycle + 1) * AUCTIONS - 1, cycle, event);
        }
    }

    private void person(long number, Event event) {
        event.type = Event.PERSON;
        event.id = FIRST_ID + number;
        int start = event.used;
        append(event, FIRST_NAMES[below(FIRST_NAMES.length)]);
        event.buffer[event.used++] = ' ';
        append(event, LAST_NAMES[below(LAST_NAMES.length)]);
        event.name = event.text(start);
        start = event.used;
        letters(event, 7, LETTERS, 26);
        event.buffer[event.used++] = '@';
        letters(event, 5, LETTERS, 26);
        append(event, DOT_COM);
        event.emailAddress = event.text(start);
        start = event.used;
        for (int group = 0; group < 4; group++) {
            if (group > 0) {
                event.buffer[event.used++] = ' ';
            }
            letters(event, 4, DIGITS, DIGITS.length);
        }
        event.creditCard = event.text(start);
        int place = below(CITIES.length);
        event.city = CITIES[place];
        event.state = STATES[place];
        int known = 16 + event.used + CITY_BYTES[place] + 2;
        extra(known, event);
    }

    private void auction(long number, long lastPerson, Event event) {
        event.type = Event.AUCTION;
        event.id = FIRST_ID + number;
        event.seller = FIRST_ID + person(lastPerson, HOT_SELLER_RATIO, 0);
        event.category = FIRST_CATEGORY + below(CATEGORIES);
        event.initialBid = price();
        event.reserve = event.initialBid + price();
        event.expires = event.dateTime + 1 + below(2 * AUCTION_HORIZON_MILLIS);
        int start = event.used;
        letters(event, 3 + below(18), LETTERS, 32);
        event.itemName = event.text(start);
        start = event.used;
        letters(event, 3 + below(98), LETTERS, 32);
        event.description = event.text(start);
        extra(56 + event.used, event);
    }

    private void bid(long lastAuction, long lastPerson, Event event) {
        event.type = Event.BID;
        long auction;
        if (below(HOT_AUCTION_RATIO) > 0) {
            auction = lastAuction / HOT_STEP * HOT_STEP;
        } else {
            int choice = (int) Math.min(lastAuction + 1, IN_FLIGHT_AUCTIONS);
            auction = lastAuction - below(choice);
        }
        event.auction = FIRST_ID + auction;
        event.bidder = FIRST_ID + person(lastPerson, HOT_BIDDER_RATIO, 1);
        event.price = price();
        long word = next();
        if (word < 0) {
            int hot = (int) (word & 3);
            event.channel = HOT_CHANNELS[hot];
            event.url = hotUrls[hot];
        } else {
            int channel = below(CHANNELS);
            event.channel = channels[channel];
            event.url = urls[channel];
        }
        extra(32, event);
    }

    /** A person's number; the hot bidder and the hot seller are neighbours, {@code shift} apart. */
    private long person(long last, int ratio, int shift) {
        if (below(ratio) > 0) {
            return Math.min(last, last / HOT_STEP * HOT_STEP + shift);
        }
        return last - below((int) Math.min(last + 1, ACTIVE_PEOPLE));
    }

    private long price() {
        double u = (next() >>> 11) * 0x1p-53;
        return Math.round(Math.exp(u * LOG_PRICE_RANGE) * 100);
    }

    private void extra(int known, Event event) {
        int mean = MEAN_SIZE[event.type] - known;
        int length = 0;
        if (mean > 0) {
            int spread = (mean + 2) / 5;
            length = mean - spread + below(2 * spread + 1);
        }
        int start = event.used;
        letters(event, length, LETTERS, 32);
        event.extra = event.text(start);
        event.size = known + length;
    }

    /** Appends {@code length} symbols out of the first {@code symbols} (at most 32) of a table. */
    private void letters(Event event, int length, byte[] table, int symbols) {
        byte[] buffer = event.buffer;
        int at = event.used;
        int end = at + length;
        while (at < end) {
            long word = next();
            int stop = Math.min(end, at + 8);
            while (at < stop) {
                buffer[at++] = table[((int) (word & 0xff) * symbols) >>> 8];
                word >>>= 8;
            }
        }
        event.used = end;
    }

    private static void append(Event event, byte[] text) {
        System.arraycopy(text, 0, event.buffer, event.used, text.length);
        event.used += text.length;
    }

    /** A random whole number from 0 to {@code bound - 1}. */
    private int below(int bound) {
        return (int) (((next() >>> 32) * bound) >>> 32);
    }

    private long next() {
        state += GAMMA;
        return mix(state);
    }

    private static long mix(long z) {
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    private static String url(Random random, int channel) {
        StringBuilder url = new StringBuilder("https://www.example.com");
        for (int part = 0; part < 3; part++) {
            url.append('/');
            for (int i = 0; i < 5; i++) {
                url.append((char) LETTERS[random.nextInt(26)]);
            }
        }
        return url.append("/item.htm?query=1&channel_id=").append(channel).toString();
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[][] asciiAll(String... texts) {
        byte[][] all = new byte[texts.length][];
        for (int i = 0; i < texts.length; i++) {
            all[i] = ascii(texts[i]);
        }
        return all;
    }

    private static StringData[] texts(String... texts) {
        StringData[] all = new StringData[texts.length];
        for (int i = 0; i < texts.length; i++) {
            all[i] = StringData.fromString(texts[i]);
        }
        return all;
    }

    private static int[] lengths(StringData[] texts) {
        int[] all = new int[texts.length];
        for (int i = 0; i < texts.length; i++) {
            all[i] = texts[i].toBytes().length;
        }
        return all;
    }
}
