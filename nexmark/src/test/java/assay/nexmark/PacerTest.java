package assay.nexmark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PacerTest {
    private static final long SECOND = 1_000_000_000L;
    private static final int BATCH = 128;

    private long now = 5_000_000_123L;

    private Pacer pacer(String schedule, int parallelism) {
        Pacer pacer = new Pacer(Schedule.parse(schedule), parallelism, () -> now, 0, 0);
        pacer.start(0);
        return pacer;
    }

    /**
     * Plays a subtask until {@code end}: an event takes {@code cost} ns, a wait {@code extra} more.
     */
    private void play(Pacer pacer, long end, long cost, long extra) {
        while (now < end) {
            int due = pacer.due(BATCH);
            for (int i = 0; i < due; i++) {
                now += cost;
                pacer.emitted();
            }
            if (due == 0) {
                long wait = pacer.waitNanos();
                if (wait == Long.MAX_VALUE) {
                    now = end;
                } else {
                    now += wait + extra;
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(doubles = {1, 7, 10, 333.3, 1000, 12_345, 99_999.9, 400_000})
    void achievesTheTargetWithinAThousandth(double rate) {
        Pacer pacer = pacer(rate + "@20", 1);
        play(pacer, now + 20 * SECOND, 1000, 60_000);
        assertEquals(rate * 20, pacer.count(), Math.max(1, rate * 20 / 1000));
    }

    @Test
    void achievesTheTargetUnderRandomDelays() {
        Pacer pacer = pacer("50000@20", 1);
        long end = now + 20 * SECOND;
        Random random = new Random(1);
        while (now < end - SECOND) {
            play(pacer, now + 50_000_000, 1000, 0);
            now += random.nextInt(30_000_000);
        }
        play(pacer, end, 1000, 0);
        assertEquals(1_000_000, pacer.count(), 1000);
    }

    @Test
    void subtasksShareTheRate() {
        Pacer pacer = pacer("9000@10", 3);
        assertEquals(3000, pacer.sample().target);
        play(pacer, now + 10 * SECOND, 1000, 0);
        assertEquals(30_000, pacer.count(), 30);
    }

    @Test
    void sleepsWhenNothingIsDue() {
        Pacer pacer = pacer("10@10", 1);
        int wakes = 0;
        long end = now + 10 * SECOND;
        while (now < end) {
            wakes++;
            int due = pacer.due(BATCH);
            for (int i = 0; i < due; i++) {
                pacer.emitted();
            }
            now += pacer.waitNanos();
        }
        assertEquals(100, pacer.count());
        assertTrue(wakes <= 102, wakes + " wake-ups");
    }

    @Test
    void aRateOfZeroSleepsToTheEndOfTheStep() {
        Pacer pacer = pacer("0@3;1000@1", 1);
        assertEquals(0, pacer.due(BATCH));
        assertEquals(3 * SECOND, pacer.waitNanos());
        now += 3 * SECOND;
        assertEquals(1, pacer.due(BATCH));
    }

    @Test
    void anOverloadedStepIsNotCaughtUpInTheNext() {
        Pacer pacer = pacer("100000@10;1000@10", 1);
        long start = now;
        play(pacer, start + 10 * SECOND, 20_000, 0);
        long first = pacer.count();
        assertEquals(500_000, first, 500);
        Pacer.Sample late = pacer.sample();
        assertEquals(0, late.step);
        assertEquals(5.0, late.lateNanos / 1e9, 0.05);
        pacer.due(BATCH);
        assertEquals(1, pacer.sample().step);
        assertEquals(0, pacer.sample().lateNanos);
        play(pacer, start + 11 * SECOND, 20_000, 0);
        assertEquals(1000, pacer.count() - first, 130);
        play(pacer, start + 20 * SECOND, 20_000, 0);
        assertEquals(10_000, pacer.count() - first, 150);
    }

    @Test
    void latenessWithinAStepIsCaughtUp() {
        Pacer pacer = pacer("1000@10", 1);
        play(pacer, now + SECOND, 1000, 0);
        now += 2 * SECOND;
        assertEquals(2.0, pacer.sample().lateNanos / 1e9, 0.002);
        play(pacer, now + SECOND, 1000, 0);
        assertEquals(4000, pacer.count(), 2);
        assertEquals(0, pacer.sample().lateNanos, Pacer.TICK);
    }

    @Test
    void aShareIsOfTheRateOfTheSecondHalfOfTheMaxStep() {
        Pacer pacer = pacer("max@10;20%@10;max@10;50%@10;150%@1", 4);
        long start = now;
        play(pacer, start + 5 * SECOND, 50_000, 0);
        play(pacer, start + 10 * SECOND, 10_000, 0);
        pacer.due(BATCH);
        assertEquals(20_000, pacer.sample().target, 20);
        assertEquals(100_000, pacer.measured(), 100);
        long before = pacer.count();
        play(pacer, start + 20 * SECOND, 1000, 0);
        assertEquals(200_000, pacer.count() - before, 200);
        play(pacer, start + 30 * SECOND, 4_000, 0);
        pacer.due(BATCH);
        assertEquals(125_000, pacer.sample().target, 200);
        play(pacer, start + 40 * SECOND + SECOND / 2, 1000, 0);
        assertEquals(375_000, pacer.sample().target, 600);
    }

    @Test
    void aMaxStepThatSawNothingKeepsTheEarlierMeasurement() {
        Pacer pacer = pacer("max@10;max@1;50%@10", 1);
        play(pacer, now + 10 * SECOND, 10_000, 0);
        pacer.due(BATCH);
        now += 2 * SECOND;
        pacer.due(BATCH);
        assertEquals(2, pacer.sample().step);
        assertEquals(50_000, pacer.sample().target, 100);
    }

    @Test
    void stepsFollowTheWallClockEvenWhenSomeAreMissed() {
        Pacer pacer = pacer("10@1;20@1;30@1;40@1", 1);
        long start = now;
        int[] expected = {0, 1, 2, 3};
        for (int step : expected) {
            now = start + step * SECOND + SECOND / 2;
            pacer.due(BATCH);
            assertEquals(step, pacer.sample().step);
        }
        Pacer stalled = pacer("10@1;20@1;30@1;40@1", 1);
        now += 2 * SECOND + SECOND / 2;
        stalled.due(BATCH);
        assertEquals(2, stalled.sample().step);
        assertEquals(30, stalled.sample().target);
        assertEquals(0, stalled.sample().stepNanos);
        now += SECOND / 2;
        stalled.due(BATCH);
        assertEquals(3, stalled.sample().step);
    }

    @Test
    void afterTheLastStepItIsIdle() {
        Pacer pacer = pacer("max@1", 1);
        play(pacer, now + SECOND, 1000, 0);
        long count = pacer.count();
        assertEquals(0, pacer.due(BATCH));
        assertEquals(Long.MAX_VALUE, pacer.waitNanos());
        now += 1000 * SECOND;
        assertEquals(0, pacer.due(BATCH));
        Pacer.Sample sample = pacer.sample();
        assertEquals(1, sample.step);
        assertEquals(0, sample.target);
        assertEquals(count, sample.count);
        assertEquals(0, sample.lateNanos);
    }

    @Test
    void aRestoredSubtaskGoesOnWhereItsScheduleStands() {
        Pacer pacer =
                new Pacer(Schedule.parse("max@10;50%@10"), 1, () -> now, 777, 40_000);
        pacer.start(15 * SECOND);
        Pacer.Sample sample = pacer.sample();
        assertEquals(1, sample.step);
        assertEquals(20_000, sample.target);
        assertEquals(777, sample.count);
        play(pacer, now + 5 * SECOND, 1000, 0);
        assertEquals(777 + 100_000, pacer.count(), 100);
    }

    @Test
    void aSampleSaysWhatHolds() {
        Pacer pacer = pacer("max@4;2000@6", 1);
        Pacer.Sample sample = pacer.sample();
        assertEquals(0, sample.step);
        assertEquals(2, sample.steps);
        assertEquals(-1, sample.target);
        assertEquals(0, sample.lateNanos);
        play(pacer, now + 4 * SECOND, 1000, 0);
        pacer.due(BATCH);
        long before = pacer.count();
        play(pacer, now + SECOND, 1000, 0);
        sample = pacer.sample();
        assertEquals(1, sample.step);
        assertEquals(now, sample.nanos);
        assertEquals(1.0, sample.stepNanos / 1e9, 0.001);
        assertEquals(before + 2000, sample.count, 2);
    }

    /**
     * One thread counts, the other reads: the count never goes back and never runs ahead of time.
     */
    @Test
    void samplesOfAnotherThreadAreConsistent() throws InterruptedException {
        Pacer pacer =
                new Pacer(Schedule.parse("max@0.2;100000@0.2;50%@0.2"), 1, System::nanoTime, 0, 0);
        pacer.start(0);
        Thread emitter =
                new Thread(
                        () -> {
                            while (pacer.waitNanos() != Long.MAX_VALUE) {
                                for (int due = pacer.due(BATCH); due > 0; due--) {
                                    pacer.emitted();
                                }
                            }
                        });
        emitter.start();
        long count = 0;
        int step = 0;
        while (step < 3) {
            Pacer.Sample sample = pacer.sample();
            assertTrue(sample.count >= count);
            assertTrue(sample.step >= step);
            assertTrue(sample.stepNanos >= 0);
            count = sample.count;
            step = sample.step;
        }
        emitter.join();
    }
}
