import java.util.concurrent.CountDownLatch;

/**
 * Rows THREADS MIB ROUNDS [own]: each thread sums a row of MIB mebibytes, ROUNDS times. The main thread creates all rows; with
 * "own", each thread creates the one that it sums. The last line is the sum, the same in both cases.
 */
public final class Rows {
    public static void main(String[] words) throws InterruptedException {
        int threads = Integer.parseInt(words[0]);
        int longs = Integer.parseInt(words[1]) << 17;
        int rounds = Integer.parseInt(words[2]);
        boolean own = words.length > 3 && words[3].equals("own");
        long[][] rows = new long[threads][];
        for (int index = 0; index < threads && !own; index++) {
            rows[index] = row(index, longs);
        }
        long[] sums = new long[threads];
        CountDownLatch created = new CountDownLatch(threads);
        Thread[] workers = new Thread[threads];
        for (int index = 0; index < threads; index++) {
            int mine = index;
            workers[index] = new Thread(() -> {
                if (own) {
                    rows[mine] = row(mine, longs);
                }
                created.countDown();
                sums[mine] = sum(rows[mine], rounds, created);
            }, "row-" + index);
            workers[index].start();
        }
        long all = 0;
        for (int index = 0; index < threads; index++) {
            workers[index].join();
            all += sums[index];
        }
        System.out.println("sum " + all);
    }

    private static long[] row(int index, int longs) {
        long[] row = new long[longs];
        for (int at = 0; at < longs; at++) {
            row[at] = at ^ index;
        }
        return row;
    }

    private static long sum(long[] row, int rounds, CountDownLatch created) {
        try {
            created.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        long sum = 0;
        for (int round = 0; round < rounds; round++) {
            for (long value : row) {
                sum += value;
            }
        }
        return sum;
    }
}
