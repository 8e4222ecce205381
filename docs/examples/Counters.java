import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Counters THREADS ROUNDS STRIDE: each thread counts in an element of one array, STRIDE elements from its neighbour. With 1,
 * eight counters are in one cache line of 64 bytes; with 16, none is in the line of another, nor in the line beside it, which
 * processors fetch too. The first STRIDE elements are left free: the length of the array is in front of them, and each access
 * reads it. The last line is the sum, the same in all cases.
 */
public final class Counters {
    public static void main(String[] words) throws InterruptedException {
        int threads = Integer.parseInt(words[0]);
        long rounds = Long.parseLong(words[1]);
        int stride = Integer.parseInt(words[2]);
        AtomicLongArray counters = new AtomicLongArray((threads + 1) * stride);
        Thread[] workers = new Thread[threads];
        for (int index = 0; index < threads; index++) {
            int own = (index + 1) * stride;
            workers[index] = new Thread(() -> count(counters, own, rounds), "counter-" + index);
            workers[index].start();
        }
        long all = 0;
        for (int index = 0; index < threads; index++) {
            workers[index].join();
            all += counters.get((index + 1) * stride);
        }
        System.out.println("counted " + all);
    }

    private static void count(AtomicLongArray counters, int own, long rounds) {
        for (long round = 0; round < rounds; round++) {
            counters.getAndIncrement(own);
        }
    }
}
