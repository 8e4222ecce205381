import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Workers N: N threads add up numbers together; while they are there, one line says where each
 * thread of the process may run, the virtual machine's own among them: {@code thread NAME cpus
 * LIST}. The last line is {@code sum NUMBER}.
 */
public final class Workers {
    private static final int EACH = 100_000;

    public static void main(String[] words) throws Exception {
        int count = Integer.parseInt(words[0]);
        AtomicLong sum = new AtomicLong();
        CountDownLatch added = new CountDownLatch(count), seen = new CountDownLatch(1);
        Thread[] workers = new Thread[count];
        for (int index = 0; index < count; index++) {
            long from = (long) index * EACH;
            workers[index] = new Thread(() -> work(from, sum, added, seen), "worker-" + index);
            workers[index].start();
        }
        added.await();
        System.gc();
        tell();
        seen.countDown();
        for (Thread worker : workers) {
            worker.join();
        }
        System.out.println("sum " + sum.get());
    }

    private static void work(long from, AtomicLong sum, CountDownLatch added, CountDownLatch seen) {
        long own = 0;
        for (long number = from; number < from + EACH; number++) {
            own += number;
        }
        sum.addAndGet(own);
        added.countDown();
        try {
            seen.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void tell() throws IOException {
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                String name = "", cpus = "";
                for (String line : Files.readAllLines(task.resolve("status"))) {
                    String[] parts = line.split(":\\s*", 2);
                    if (parts[0].equals("Name")) {
                        name = parts[1].replace(' ', '_');
                    } else if (parts[0].equals("Cpus_allowed_list")) {
                        cpus = parts[1];
                    }
                }
                System.out.println("thread " + name + " cpus " + cpus);
            }
        }
    }
}
