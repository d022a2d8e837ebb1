package assay.nexmark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import assay.nexmark.Schedule.Kind;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ScheduleTest {
    @Test
    void readsEveryKindOfStep() {
        Schedule schedule = Schedule.parse("max@10; 12.5%@0.5 ;20000@6;0@1");
        assertEquals(4, schedule.steps.size());
        assertEquals(Kind.MAX, schedule.steps.get(0).kind);
        assertEquals(10_000_000_000L, schedule.steps.get(0).nanos);
        assertEquals(Kind.SHARE, schedule.steps.get(1).kind);
        assertEquals(0.125, schedule.steps.get(1).value, 1e-12);
        assertEquals(500_000_000L, schedule.steps.get(1).nanos);
        assertEquals(Kind.RATE, schedule.steps.get(2).kind);
        assertEquals(20_000, schedule.steps.get(2).value);
        assertEquals(0, schedule.steps.get(3).value);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "", ";", "max", "max@", "@5", "max@10;", "max@0", "max@-1", "max@1e3", "Max@5",
                "-5@5", "1e400@5", "NaN@5", "5@NaN", "5@Infinity", "max@10;0%@5", "max@10;1001%@5",
                "max@10;%@5", "5@@5", "5@5@5", "5@2000000", "5@0.001", "max@10,5@5", "'@1"
            })
    void refusesWhatItCannotUse(String text) {
        IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> Schedule.parse(text));
        assertTrue(e.getMessage().startsWith("schedule: "), e.getMessage());
    }

    @Test
    void namesTheStepThatIsWrong() {
        IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> Schedule.parse("5@5;fast@6"));
        assertTrue(e.getMessage().contains("step 2 'fast@6'"), e.getMessage());
    }

    @Test
    void aShareNeedsAMaxStepBeforeIt() {
        IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> Schedule.parse("50%@5;max@5"));
        assertTrue(e.getMessage().contains("needs a max step before it"), e.getMessage());
    }

    @Test
    void refusesTooManySteps() {
        String text = "1@1;".repeat(1000) + "1@1";
        assertThrows(IllegalArgumentException.class, () -> Schedule.parse(text));
    }
}
