package assay.nexmark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The subtasks of one job in this process. A window stays open until the slowest subtask has passed
 * it, so whoever is too far ahead of the slowest waits for it: what windows keep stays bounded.
 * What 100 % is they measure together, so that paced steps do not take them apart.
 */
final class Pack {
    /** Events of its own by which a subtask may be ahead of the slowest. */
    static final long AHEAD = 25_000;

    private static final Map<String, Pack> ALL = new ConcurrentHashMap<>();

    private final Map<Integer, Pacer> members = new ConcurrentHashMap<>();

    /** The pack of a job. */
    static Pack of(String job) {
        return ALL.computeIfAbsent(job, any -> new Pack());
    }

    void join(int subtask, Pacer pacer) {
        members.put(subtask, pacer);
    }

    /** Takes a subtask out of the job's pack, which goes with the last. */
    static void leave(String job, int subtask) {
        ALL.computeIfPresent(
                job,
                (any, pack) -> {
                    pack.members.remove(subtask);
                    return pack.members.isEmpty() ? null : pack;
                });
    }

    /** Up to which count a subtask may go now. */
    long limit() {
        long slowest = Long.MAX_VALUE - AHEAD;
        for (Pacer member : members.values()) {
            slowest = Math.min(slowest, member.seen());
        }
        return slowest + AHEAD;
    }

    /** Events that a subtask has emitted in the mean. */
    double mean() {
        long sum = 0;
        int number = 0;
        for (Pacer member : members.values()) {
            sum += member.seen();
            number++;
        }
        return number == 0 ? 0 : (double) sum / number;
    }
}
