package assay.nexmark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import org.apache.flink.table.factories.Factory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class JobTest {
    @Test
    void readsItsArguments() {
        Job job =
                new Job("--query", "q2", "--schedule", "max@5", "--seed", "-9", "--parallelism", "4");
        assertEquals(Query.Q2, job.query);
        assertEquals("max@5", job.schedule);
        assertEquals(-9, job.seed);
        assertEquals(4, job.parallelism);
    }

    @Test
    void seedAndParallelismAreOneUnlessGiven() {
        Job job = new Job("--query", "q0", "--schedule", "max@5");
        assertEquals(1, job.seed);
        assertEquals(1, job.parallelism);
    }

    @ParameterizedTest
    @CsvSource({
        "--schedule max@5, --query is missing",
        "--query q0, --schedule is missing",
        "--query q9 --schedule max@5, unknown query 'q9'",
        "--query q0 --schedule, --schedule has no value",
        "--query q0 --schedule 50%@5, needs a max step before it",
        "--query q0 --query q1, --query is given twice",
        "--query q0 --speed 5, unknown argument '--speed'",
        "--query q0 --schedule max@5 --seed x, --seed is not a whole number: 'x'",
        "--query q0 --schedule max@5 --parallelism 0, --parallelism must be from 1 to 32768",
    })
    void saysWhatIsWrong(String args, String message) {
        IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> new Job(args.split(" ")));
        assertTrue(e.getMessage().contains(message), e.getMessage());
    }

    @Test
    void flinkFindsTheConnector() {
        List<String> found = new ArrayList<>();
        for (Factory factory : ServiceLoader.load(Factory.class)) {
            found.add(factory.factoryIdentifier());
        }
        assertTrue(found.contains("assay-nexmark"), found.toString());
    }
}
