package assay.nexmark;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.function.LongSupplier;

/**
 * Says how many events of one subtask are due, in ticks of 1 ms. Within a step, lateness is caught
 * up; a new step starts from a clean base. One thread paces; any thread may take a {@link #sample}.
 */
final class Pacer {
    /** Length of a tick in nanoseconds. */
    static final long TICK = 1_000_000;

    /** {@link Sample#target} of a step that runs as fast as it can. */
    static final double UNLIMITED = -1;

    private static final double TICKS_PER_SECOND = 1e9 / TICK;
    private static final double ROUNDING = 1e-6;
    private static final VarHandle COUNT;

    static {
        try {
            COUNT = MethodHandles.lookup().findVarHandle(Pacer.class, "count", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final Schedule schedule;
    private final int parallelism;
    private final LongSupplier clock;

    private volatile Current current = new Current(-1, 0, 0, 0, 0);
    private long count;
    private long scheduledEnd;
    private double measured;
    private boolean halfSeen;
    private long halfNanos;
    private double halfCount;
    private double countBefore;
    private Pack pack;

    /**
     * @param parallelism number of subtasks that share a numeric rate
     * @param clock nanoseconds, never going back
     * @param count events already emitted
     * @param measured events per second reached in an earlier {@code max} step, or 0
     */
    Pacer(Schedule schedule, int parallelism, LongSupplier clock, long count, double measured) {
        this.schedule = schedule;
        this.parallelism = parallelism;
        this.clock = clock;
        this.count = count;
        this.measured = measured;
    }

    /** What 100 % is, is measured of all in this pack; before {@link #start}. */
    void goWith(Pack pack) {
        this.pack = pack;
    }

    /** Starts the schedule, {@code elapsed} nanoseconds into it. */
    void start(long elapsed) {
        long now = clock.getAsLong();
        scheduledEnd = now - elapsed;
        advance(now);
    }

    /** Events to emit now, at most {@code limit}. */
    int due(int limit) {
        long now = clock.getAsLong();
        if (now - scheduledEnd >= 0 && current.step < schedule.steps.size()) {
            advance(now);
        }
        Current step = current;
        if (step.target == UNLIMITED) {
            if (!halfSeen && now - step.begin >= (step.end - step.begin) / 2) {
                halfSeen = true;
                halfNanos = now;
                halfCount = progress();
            }
            return limit;
        }
        return (int) Math.max(0, Math.min(limit, step.allowed(now) - (count - step.countBefore)));
    }

    /** Notes that one event was emitted. */
    void emitted() {
        COUNT.setOpaque(this, count + 1);
    }

    /**
     * Nanoseconds until the next event is due or the step ends; 0 if an event is due now, and
     * {@link Long#MAX_VALUE} after the last step.
     */
    long waitNanos() {
        Current step = current;
        if (step.step == schedule.steps.size()) {
            return Long.MAX_VALUE;
        }
        long now = clock.getAsLong();
        long left = Math.max(0, step.end - now);
        if (step.target == UNLIMITED || step.allowed(now) > count - step.countBefore) {
            return 0;
        }
        if (step.target == 0) {
            return left;
        }
        long tick = Math.max(step.dueTick(count - step.countBefore), (now - step.begin) / TICK + 1);
        return Math.min(left, step.begin + tick * TICK - now);
    }

    long count() {
        return count;
    }

    /** The count, for other threads. */
    long seen() {
        return (long) COUNT.getOpaque(this);
    }

    /** Events emitted, or what a subtask of the pack has in the mean. */
    private double progress() {
        return pack == null ? count : pack.mean();
    }

    double measured() {
        return measured;
    }

    /** Step, count and time of one instant. */
    Sample sample() {
        while (true) {
            Current step = current;
            long before = clock.getAsLong();
            long seen = seen();
            VarHandle.acquireFence();
            long nanos = clock.getAsLong();
            if (current == step && nanos - before < TICK / 10) {
                return new Sample(step, seen, nanos, schedule.steps.size());
            }
            Thread.onSpinWait();
        }
    }

    /** Goes to the step of this moment, past any that were missed. */
    private void advance(long now) {
        int next = current.step;
        measure(now);
        while (now - scheduledEnd >= 0) {
            next++;
            if (next == schedule.steps.size()) {
                break;
            }
            scheduledEnd += schedule.steps.get(next).nanos;
        }
        halfSeen = false;
        countBefore = progress();
        current = new Current(next, target(next), now, scheduledEnd, count);
    }

    private void measure(long now) {
        Current step = current;
        if (step.step < 0 || step.target != UNLIMITED) {
            return;
        }
        long nanos = now - (halfSeen ? halfNanos : step.begin);
        double events = progress() - (halfSeen ? halfCount : countBefore);
        if (nanos > 0 && events > 0) {
            measured = events * 1e9 / nanos;
        }
    }

    private double target(int index) {
        if (index == schedule.steps.size()) {
            return 0;
        }
        Schedule.Step step = schedule.steps.get(index);
        switch (step.kind) {
            case MAX:
                return UNLIMITED;
            case SHARE:
                return step.value * measured;
            default:
                return step.value / parallelism;
        }
    }

    /** The step that runs; never changed once published. */
    private static final class Current {
        final int step;
        final double target;
        final long begin;
        final long end;
        final long countBefore;

        Current(int step, double target, long begin, long end, long countBefore) {
            this.step = step;
            this.target = target;
            this.begin = begin;
            this.end = end;
            this.countBefore = countBefore;
        }

        /** Events of this step that are due: all of the present tick, none past the step's end. */
        long allowed(long now) {
            double ticks = Math.min((now - begin) / TICK + 1, (end - begin) / (double) TICK);
            return (long) Math.floor(target * ticks / TICKS_PER_SECOND + ROUNDING);
        }

        /** The tick in which the event after the first {@code emitted} of this step is due. */
        long dueTick(long emitted) {
            double ticks = (emitted + 1) * TICKS_PER_SECOND / target;
            return Math.max(0, (long) Math.ceil(ticks - ROUNDING) - 1);
        }
    }

    /** What another thread may know of the pacing, all of one instant. */
    static final class Sample {
        /** Index of the step, -1 before the first and the number of steps after the last. */
        final int step;

        final int steps;

        /** Events per second of this subtask, or {@link #UNLIMITED}. */
        final double target;

        /** The clock at this instant, in nanoseconds. */
        final long nanos;

        /** Nanoseconds since the step began. */
        final long stepNanos;

        /** Events emitted so far. */
        final long count;

        /** Nanoseconds by which the oldest event that is due and not emitted is late; 0 if none. */
        final long lateNanos;

        private Sample(Current current, long count, long nanos, int steps) {
            this.step = current.step;
            this.steps = steps;
            this.target = current.target;
            this.nanos = nanos;
            this.count = count;
            boolean begun = current.step >= 0;
            this.stepNanos = begun ? nanos - current.begin : 0;
            long emitted = count - current.countBefore;
            if (begun && current.target > 0 && current.allowed(nanos) > emitted) {
                lateNanos = Math.max(0, nanos - current.begin - current.dueTick(emitted) * TICK);
            } else {
                lateNanos = 0;
            }
        }
    }
}
