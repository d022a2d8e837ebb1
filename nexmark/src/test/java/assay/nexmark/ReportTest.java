package assay.nexmark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ReportTest {
    @Test
    void readsTheTimeOfAProcessWhoseNameHoldsBracketsAndSpaces() {
        String stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 11 0 0 0 1234 66 5 6 20 0 9 0 100";
        assertEquals(1300, Report.processTicks(stat));
    }

    @Test
    void readsTheAllowedCpus() {
        assertEquals("0-1,4", Report.allowed("Cpus_allowed:\t13\nCpus_allowed_list:\t0-1,4\nX:\t1\n"));
        assertNull(Report.allowed("Name:\tjava\n"));
        assertNull(Report.allowed(null));
    }

    @Test
    void addsUpTheTicksOfEveryCpu() {
        String stat =
                "cpu  11 22 33 44 55 66 77 88 0 0\n"
                        + "cpu0 1 2 3 40 5 6 7 8 100 0\n"
                        + "cpu12 10 20 30 400 50 60 70 80 0 0\n"
                        + "intr 1 2 3\n";
        StringBuilder out = new StringBuilder();
        Report.cpus(stat, out);
        assertEquals("[[0,19,45,8],[12,190,450,80]]", out.toString());
    }

    @Test
    void quotesText() {
        assertEquals("\"a\\\"b\\\\c\\u000ad\"", Report.quote("a\"b\\c\nd"));
    }

    @Test
    void saysThatTheSourceHasNotStarted() {
        String value = new Report(3, 5, () -> null).getValue();
        assertTrue(value.startsWith("{\"v\":1,\"host\":\""), value);
        assertTrue(value.contains("\"subtask\":3,\"step\":-1,\"steps\":5,\"target\":0.000,"), value);
        assertTrue(value.contains("\"count\":0,"), value);
        assertTrue(value.contains("\"gc\":[\""), value);
        assertTrue(value.endsWith("}"), value);
    }

    @Test
    void saysWhereTheSourceStands() {
        Pacer pacer = new Pacer(Schedule.parse("max@100;5@5"), 2, System::nanoTime, 0, 0);
        pacer.start(0);
        pacer.emitted();
        String value = new Report(0, 2, () -> pacer).getValue();
        assertTrue(value.contains("\"step\":0,\"steps\":2,\"target\":-1.000,"), value);
        assertTrue(value.contains("\"count\":1,\"late_ns\":0,"), value);
    }
}
