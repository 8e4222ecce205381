import java.util.HashMap;
import java.util.Map;

/** Four threads count words in one map, each under the same monitor. */
public class Monitor {
    private static final int THREADS = 4;
    private static final int WORDS = 50_000;
    private static final Map<Integer, Integer> COUNTS = new HashMap<>();

    private static synchronized void count(int word) {
        COUNTS.merge(word, 1, Integer::sum);
    }

    public static void main(String[] arguments) throws InterruptedException {
        final long rounds = Long.parseLong(arguments[0]);
        Thread[] threads = new Thread[THREADS];
        for (int k = 0; k < THREADS; k++) {
            final int first = k;
            threads[k] = new Thread(() -> {
                int word = first;
                for (long round = 0; round < rounds; round++) {
                    word = (word * 31 + 7) % WORDS;
                    count(word);
                }
            });
            threads[k].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(COUNTS.values().stream().mapToLong(Integer::longValue).sum());
    }
}
