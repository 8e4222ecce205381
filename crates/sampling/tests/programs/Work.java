import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Random;

/** Maps, lists and sorting, until it is killed. */
public class Work {
    record Item(int value, String name) {}

    static volatile long sum;

    public static void main(String[] words) {
        Random random = new Random(1);
        while (true) {
            HashMap<Integer, Item> table = new HashMap<>();
            for (int i = 0; i < 20000; i++) table.put(random.nextInt(100000), new Item(i, "n" + i));
            List<Item> list = new ArrayList<>(table.values());
            list.sort((a, b) -> Integer.compare(a.value(), b.value()));
            long total = 0;
            for (int k = 0; k < 100000; k++) {
                Item item = table.get(k);
                if (item != null) total += item.value();
            }
            sum = total;
        }
    }
}
