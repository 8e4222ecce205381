/**
 * Two threads ask objects for interfaces. Each class keeps the interface that it was asked for last; `shared` asks for
 * two interfaces in turn on two classes that both threads use, `apart` has a class for each thread.
 */
public final class TypeCheck {
    interface First {}
    interface Second {}
    static class A implements First, Second {}
    static class B implements First, Second {}

    static volatile long sink;
    static volatile boolean stop;

    static long check(Object[] objects) {
        long found = 0;
        for (int i = 0; i < 1024; i++) {
            Object object = objects[i & objects.length - 1];
            if (object instanceof First) found++;
            if (object instanceof Second) found++;
        }
        return found;
    }

    public static void main(String[] words) throws Exception {
        boolean apart = words[0].equals("apart");
        double seconds = Double.parseDouble(words[1]);
        Thread[] threads = new Thread[2];
        long[] checks = new long[32];
        for (int thread = 0; thread < 2; thread++) {
            int number = thread;
            Object own = thread == 0 ? new A() : new B();
            Object[] objects = apart ? new Object[] {own, own} : new Object[] {new A(), new B()};
            threads[thread] = new Thread(() -> {
                long found = 0;
                while (!stop) found += check(objects);
                checks[number * 16] = found;
            }, "checker-" + thread);
            threads[thread].start();
        }
        Thread.sleep((long) (seconds * 1000));
        stop = true;
        for (Thread thread : threads) thread.join();
        System.out.printf("%.2f ns%n", seconds * 1e9 * 2 / (checks[0] + checks[16]));
    }
}
