package assay.nexmark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import org.junit.jupiter.api.Test;

class PackTest {
    private long now = 1_000;

    private Pacer member(Pack pack, int subtask) {
        Pacer pacer = new Pacer(Schedule.parse("max@10;50%@10"), 2, () -> now, 0, 0);
        pacer.goWith(pack);
        pack.join(subtask, pacer);
        pacer.start(0);
        return pacer;
    }

    private static void emit(Pacer pacer, int events) {
        pacer.due(events);
        for (int i = 0; i < events; i++) {
            pacer.emitted();
        }
    }

    @Test
    void nobodyMayBeFarAheadOfTheSlowest() {
        Pack pack = Pack.of("limits");
        Pacer fast = member(pack, 0);
        assertEquals(Pack.AHEAD, pack.limit());
        emit(fast, 5_000);
        assertEquals(5_000 + Pack.AHEAD, pack.limit(), "alone it is the slowest");
        Pacer slow = member(pack, 1);
        emit(slow, 300);
        assertEquals(300 + Pack.AHEAD, pack.limit());
        Pack.leave("limits", 1);
        assertEquals(5_000 + Pack.AHEAD, pack.limit(), "one that ended is not waited for");
    }

    @Test
    void aJobHasOnePackUntilItsLastSubtaskLeaves() {
        Pack pack = Pack.of("one");
        member(pack, 0);
        member(pack, 1);
        assertSame(pack, Pack.of("one"));
        assertNotSame(pack, Pack.of("another"));
        Pack.leave("one", 0);
        assertSame(pack, Pack.of("one"));
        Pack.leave("one", 1);
        assertNotSame(pack, Pack.of("one"));
    }

    @Test
    void sharesAreOfWhatAllReachedInTheMean() {
        Pack pack = Pack.of("shares");
        Pacer fast = member(pack, 0);
        Pacer slow = member(pack, 1);
        for (int tick = 0; tick < 100; tick++) {
            emit(fast, 300);
            emit(slow, 100);
            now += 100_000_000;
        }
        fast.due(1);
        slow.due(1);
        // Half of 2,000 for both: alone they would have 1,500 and 500. A tick is a fiftieth of what
        // was measured.
        assertEquals(1_000, fast.sample().target, 20);
        assertEquals(1_000, slow.sample().target, 20);
    }
}
