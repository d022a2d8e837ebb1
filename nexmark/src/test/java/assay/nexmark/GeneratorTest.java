package assay.nexmark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class GeneratorTest {
    private static final long EVENTS = 1_000_000;
    /** From here on there are more auctions and persons than can be chosen from. */
    private static final long SETTLED = 60_000;

    private static void each(long from, long to, Consumer<Event> check) {
        Generator generator = new Generator(7);
        Event event = new Event();
        for (long n = from; n < to; n++) {
            generator.fill(n, event);
            check.accept(event);
        }
    }

    /** All that the event says, as text. */
    private static String say(Event event) {
        switch (event.type) {
            case Event.PERSON:
                return "person " + event.id + " " + event.name + " " + event.emailAddress + " "
                        + event.creditCard + " " + event.city + " " + event.state + " "
                        + event.dateTime + " " + event.extra;
            case Event.AUCTION:
                return "auction " + event.id + " " + event.itemName + " " + event.description + " "
                        + event.initialBid + " " + event.reserve + " " + event.dateTime + " "
                        + event.expires + " " + event.seller + " " + event.category + " " + event.extra;
            default:
                return "bid " + event.auction + " " + event.bidder + " " + event.price + " "
                        + event.channel + " " + event.url + " " + event.dateTime + " " + event.extra;
        }
    }

    private static String say(Generator generator, long n) {
        Event event = new Event();
        generator.fill(n, event);
        return say(event);
    }

    @Test
    void everyFiftyEventsHoldOnePersonThreeAuctionsAndFortySixBids() {
        long[] seen = new long[3];
        each(0, 5000, event -> seen[event.type]++);
        assertEquals(100, seen[Event.PERSON]);
        assertEquals(300, seen[Event.AUCTION]);
        assertEquals(4600, seen[Event.BID]);
    }

    @Test
    void meanSizesAreThoseOfNexmark() {
        double[] sum = new double[3];
        double[] events = new double[3];
        each(0, EVENTS, event -> {
            sum[event.type] += event.size;
            events[event.type]++;
        });
        assertEquals(200, sum[Event.PERSON] / events[Event.PERSON], 4);
        assertEquals(500, sum[Event.AUCTION] / events[Event.AUCTION], 10);
        assertEquals(100, sum[Event.BID] / events[Event.BID], 2);
    }

    @Test
    void sizeIsTheSumOfTheFields() {
        each(0, 500, event -> {
            int texts = bytes(event.extra);
            int numbers = 4;
            if (event.type == Event.PERSON) {
                numbers = 2;
                texts += bytes(event.name) + bytes(event.emailAddress) + bytes(event.creditCard)
                        + bytes(event.city) + bytes(event.state);
            } else if (event.type == Event.AUCTION) {
                numbers = 7;
                texts += bytes(event.itemName) + bytes(event.description);
            }
            assertEquals(8 * numbers + texts, event.size);
        });
    }

    private static int bytes(Object text) {
        return text.toString().length();
    }

    @Test
    void extraVariesByAFifth() {
        int[] range = {Integer.MAX_VALUE, 0};
        each(0, 100_000, event -> {
            if (event.type == Event.BID) {
                range[0] = Math.min(range[0], event.size - 32);
                range[1] = Math.max(range[1], event.size - 32);
            }
        });
        assertEquals(68 - 14, range[0]);
        assertEquals(68 + 14, range[1]);
    }

    @Test
    void halfOfTheBidsGoToTheHotAuctionAndTheOthersToThoseInFlight() {
        long[] hot = new long[2];
        Generator generator = new Generator(7);
        Event event = new Event();
        for (long n = SETTLED; n < EVENTS; n++) {
            generator.fill(n, event);
            if (event.type != Event.BID) {
                continue;
            }
            long last = Generator.FIRST_ID + n / 50 * 3 + 2;
            assertTrue(event.auction <= last && event.auction > last - 100, say(event));
            hot[event.auction == last / 100 * 100 ? 1 : 0]++;
        }
        // One in a hundred of the cold choices is the hot auction too.
        assertEquals(0.505, hot[1] / (double) (hot[0] + hot[1]), 0.005);
    }

    @Test
    void threeOfFourBiddersAndSellersAreHot() {
        long[] bidders = new long[2];
        long[] sellers = new long[2];
        Generator generator = new Generator(7);
        Event event = new Event();
        for (long n = SETTLED; n < EVENTS; n++) {
            generator.fill(n, event);
            long last = Generator.FIRST_ID + n / 50;
            long hundred = last / 100 * 100;
            if (event.type == Event.BID) {
                assertTrue(event.bidder <= last && event.bidder > last - 1000, say(event));
                bidders[event.bidder == Math.min(last, hundred + 1) ? 1 : 0]++;
            } else if (event.type == Event.AUCTION) {
                assertTrue(event.seller <= last && event.seller > last - 1000, say(event));
                sellers[event.seller == hundred ? 1 : 0]++;
            }
        }
        assertEquals(0.75, bidders[1] / (double) (bidders[0] + bidders[1]), 0.01);
        assertEquals(0.75, sellers[1] / (double) (sellers[0] + sellers[1]), 0.01);
    }

    @Test
    void theFirstEventsReferToWhatExists() {
        each(0, 5000, event -> {
            if (event.type == Event.BID) {
                assertTrue(event.auction >= Generator.FIRST_ID, say(event));
                assertTrue(event.bidder >= Generator.FIRST_ID, say(event));
            } else if (event.type == Event.AUCTION) {
                assertTrue(event.seller >= Generator.FIRST_ID, say(event));
                assertTrue(event.expires > event.dateTime, say(event));
                assertTrue(event.reserve > event.initialBid, say(event));
                assertTrue(event.category >= 10 && event.category < 15, say(event));
            }
        });
    }

    @Test
    void idsCountUp() {
        long[] next = {Generator.FIRST_ID, Generator.FIRST_ID};
        each(0, 5000, event -> {
            if (event.type != Event.BID) {
                assertEquals(next[event.type]++, event.id);
            }
        });
    }

    @Test
    void pricesAreEvenlySpreadOverSixDecades() {
        long[] decades = new long[6];
        long[] bids = new long[1];
        each(0, EVENTS, event -> {
            if (event.type == Event.BID) {
                assertTrue(event.price >= 100 && event.price <= 100_000_000, say(event));
                int decade = (int) Math.floor(Math.log10(event.price / 100.0) + 1e-12);
                decades[Math.min(decade, 5)]++;
                bids[0]++;
            }
        });
        for (long decade : decades) {
            assertEquals(1 / 6.0, decade / (double) bids[0], 0.002);
        }
    }

    @Test
    void halfOfTheChannelsAreHotAndTheOthersComeFromTheCache() {
        Map<String, String> urls = new HashMap<>();
        long[] seen = new long[2];
        each(0, EVENTS, event -> {
            if (event.type == Event.BID) {
                String channel = event.channel.toString();
                seen[channel.startsWith("channel-") ? 1 : 0]++;
                String url = event.url.toString();
                assertEquals(url, urls.computeIfAbsent(channel, none -> url));
            }
        });
        assertEquals(0.5, seen[0] / (double) (seen[0] + seen[1]), 0.005);
        assertEquals(4 + Generator.CHANNELS, urls.size());
    }

    @Test
    void theSameSeedGivesTheSameEventsAndAnotherSeedOthers() {
        Generator one = new Generator(3);
        Generator same = new Generator(3);
        Generator other = new Generator(4);
        for (long n = 0; n < 1000; n++) {
            assertEquals(say(one, n), say(same, n));
            assertNotEquals(say(one, n), say(other, n));
        }
    }

    @Test
    void eventsDoNotDependOnParallelism() {
        int events = 6000;
        Set<String> all = new HashSet<>();
        Generator one = new Generator(5);
        for (long n = 0; n < events; n++) {
            all.add(say(one, n));
        }
        for (int parallelism : new int[] {2, 3, 7}) {
            Set<String> together = new HashSet<>();
            for (int subtask = 0; subtask < parallelism; subtask++) {
                Generator own = new Generator(5);
                for (long n = subtask; n < events; n += parallelism) {
                    together.add(say(own, n));
                }
            }
            assertEquals(all, together);
        }
    }

    @Test
    void eventTimeGoesOnWithTheNumber() {
        long[] last = {0};
        each(0, 10_000, event -> {
            assertFalse(event.dateTime < last[0]);
            last[0] = event.dateTime;
        });
        assertEquals(Generator.FIRST_TIME + 999, last[0]);
    }

    @Test
    void everyTextFitsItsBuffer() {
        each(0, EVENTS, event -> assertTrue(event.used < Event.BUFFER_BYTES));
    }

    /** In turns, so that a busy machine slows both: an event costs at most 50 digests of 1 KiB. */
    @Test
    void anEventIsCheap() {
        Generator generator = new Generator(1);
        Event event = new Event();
        byte[] block = new byte[1024];
        long events = 0;
        long yardstick = 0;
        int sum = 0;
        for (int round = 0; round < 20; round++) {
            long begin = System.nanoTime();
            for (long n = 0; n < 10_000; n++) {
                generator.fill(n, event);
                sum += event.size;
            }
            long middle = System.nanoTime();
            for (int i = 0; i < 10_000; i++) {
                java.util.zip.CRC32 crc = new java.util.zip.CRC32();
                block[0] = (byte) i;
                crc.update(block);
                sum += (int) crc.getValue();
            }
            events += middle - begin;
            yardstick += System.nanoTime() - middle;
        }
        assertNotEquals(0, sum);
        assertTrue(events < 50 * yardstick, events + " ns against " + yardstick + " ns");
    }
}
