// Threads that take a monitor, or a lock, for most of their time: 'Monitor monitor|lock SECONDS'.
import java.util.concurrent.locks.ReentrantLock;

public class Monitor {
    static class Account {
        long total;
    }

    static final Account account = new Account();
    static final ReentrantLock lock = new ReentrantLock();

    static long compute(long seed) {
        long sum = seed;
        for (int i = 0; i < 2_000_000; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }

    static void deposit(long seed) {
        synchronized (account) {
            account.total += compute(seed);
        }
    }

    static void transfer(long seed) {
        lock.lock();
        try {
            account.total += compute(seed);
        } finally {
            lock.unlock();
        }
    }

    public static void main(String[] words) throws Exception {
        boolean isMonitor = words[0].equals("monitor");
        long end = System.nanoTime() + (long) (Double.parseDouble(words[1]) * 1e9);
        Thread[] tellers = new Thread[4];
        for (int nth = 0; nth < tellers.length; nth++) {
            long seed = nth;
            tellers[nth] = new Thread(() -> {
                while (System.nanoTime() < end) {
                    if (isMonitor) {
                        deposit(seed);
                    } else {
                        transfer(seed);
                    }
                }
            }, "teller-" + nth);
            tellers[nth].start();
        }
        for (Thread teller : tellers) {
            teller.join();
        }
        System.out.println(account.total);
    }
}
