/** Each thread adds to its own counter; the counters are neighbours in one array. */
public class FalseSharing {
    private static final int THREADS = 2;
    private static final java.util.concurrent.atomic.AtomicLongArray COUNTERS =
        new java.util.concurrent.atomic.AtomicLongArray(THREADS);

    public static void main(String[] arguments) throws InterruptedException {
        final long rounds = Long.parseLong(arguments[0]);
        Thread[] threads = new Thread[THREADS];
        for (int k = 0; k < THREADS; k++) {
            final int own = k;
            threads[k] = new Thread(() -> {
                for (long round = 0; round < rounds; round++) {
                    COUNTERS.getAndIncrement(own);
                }
            });
            threads[k].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(COUNTERS);
    }
}
