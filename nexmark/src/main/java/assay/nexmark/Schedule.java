package assay.nexmark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The steps that a run walks: {@code RATE@SECONDS;RATE@SECONDS;...}, where RATE is {@code max}, a
 * number of events per second over all subtasks together, or {@code NN%} of the rate that the
 * subtask reached in the last {@code max} step before.
 */
public final class Schedule {
    /** How a step's rate is given. */
    public enum Kind {
        /** As fast as it can. */
        MAX,
        /** Events per second over all subtasks. */
        RATE,
        /** A share of the rate measured in the last {@code max} step. */
        SHARE
    }

    /** One step. */
    public static final class Step {
        public final Kind kind;

        /** Events per second for {@link Kind#RATE}, a fraction for {@link Kind#SHARE}, else 0. */
        public final double value;

        /** Length in nanoseconds. */
        public final long nanos;

        Step(Kind kind, double value, long nanos) {
            this.kind = kind;
            this.value = value;
            this.nanos = nanos;
        }
    }

    private static final Pattern STEP =
            Pattern.compile("(max|\\d{1,12}(?:\\.\\d{1,9})?%?)@(\\d{1,7}(?:\\.\\d{1,9})?)");
    private static final double MOST_PERCENT = 1000;
    private static final double LEAST_SECONDS = 0.01;
    private static final double MOST_SECONDS = 1e6;
    private static final int MOST_STEPS = 1000;

    /** The steps in order; at least one. */
    public final List<Step> steps;

    private Schedule(List<Step> steps) {
        this.steps = Collections.unmodifiableList(steps);
    }

    /**
     * Reads a schedule.
     *
     * @throws IllegalArgumentException naming the part that cannot be used
     */
    public static Schedule parse(String text) {
        String[] parts = text.split(";", -1);
        if (parts.length > MOST_STEPS) {
            throw new IllegalArgumentException(
                    "schedule: " + parts.length + " steps, at most " + MOST_STEPS + " are allowed");
        }
        List<Step> steps = new ArrayList<>();
        boolean measured = false;
        for (int i = 0; i < parts.length; i++) {
            String part = parts[i].trim();
            String where = "schedule: step " + (i + 1) + " '" + part + "': ";
            Matcher match = STEP.matcher(part);
            if (!match.matches()) {
                throw new IllegalArgumentException(
                        where + "expected RATE@SECONDS with RATE max, events per second or NN%");
            }
            double seconds = Double.parseDouble(match.group(2));
            if (seconds < LEAST_SECONDS || seconds > MOST_SECONDS) {
                throw new IllegalArgumentException(
                        where + "a step lasts from 0.01 to 1000000 seconds");
            }
            Step step = step(match.group(1), Math.round(seconds * 1e9));
            if (step.kind == Kind.SHARE) {
                if (!measured) {
                    throw new IllegalArgumentException(
                            where + "a percentage needs a max step before it");
                }
                if (step.value <= 0 || step.value > MOST_PERCENT / 100) {
                    throw new IllegalArgumentException(
                            where + "a percentage is above 0 and at most 1000");
                }
            }
            measured |= step.kind == Kind.MAX;
            steps.add(step);
        }
        return new Schedule(steps);
    }

    private static Step step(String rate, long nanos) {
        if (rate.equals("max")) {
            return new Step(Kind.MAX, 0, nanos);
        }
        if (rate.endsWith("%")) {
            double percent = Double.parseDouble(rate.substring(0, rate.length() - 1));
            return new Step(Kind.SHARE, percent / 100, nanos);
        }
        return new Step(Kind.RATE, Double.parseDouble(rate), nanos);
    }
}
