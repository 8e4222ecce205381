/* sites: a list, a tree and a hash table of small blocks, allocated in turn, two of them of the same size; each is read by a
 * function of its own, in turn. */
#include <stdint.h>
#include <stdlib.h>

enum { COUNT = 1200000, BUCKETS = 1 << 21, TURNS = 12 };

struct item {
    struct item *next;
    uint64_t value[4];
};
struct node {
    struct node *below[2];
    uint64_t key, value[2];
};
struct entry {
    struct entry *next;
    uint64_t key, value[6];
};

static struct item *items[COUNT];
static struct node *root;
static struct entry *buckets[BUCKETS];
static volatile uint64_t sink;
static uint64_t state = 88172645463325252;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Behind one that was added before. */
__attribute__((noinline)) static void add_to_list(size_t count)
{
    struct item *item = malloc(sizeof *item);
    item->value[0] = count;
    item->next = NULL;
    if (count > 0) {
        struct item *before = items[next_random() % count];
        item->next = before->next;
        before->next = item;
    }
    items[count] = item;
}

__attribute__((noinline)) static void add_to_tree(void)
{
    struct node *node = calloc(1, sizeof *node), **place = &root;
    node->key = next_random();
    while (*place)
        place = &(*place)->below[node->key > (*place)->key];
    *place = node;
}

__attribute__((noinline)) static void add_to_table(void)
{
    struct entry *entry = malloc(sizeof *entry);
    entry->key = next_random();
    entry->next = buckets[entry->key % BUCKETS];
    buckets[entry->key % BUCKETS] = entry;
}

__attribute__((noinline)) static void read_list(void)
{
    uint64_t sum = 0;
    for (int round = 0; round < 4; round++)
        for (struct item *item = items[0]; item; item = item->next)
            sum += item->value[0];
    sink = sum;
}

__attribute__((noinline)) static void read_tree(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < 250000; i++) {
        uint64_t key = next_random();
        for (struct node *node = root; node; node = node->below[key > node->key])
            sum += node->value[0];
    }
    sink = sum;
}

__attribute__((noinline)) static void read_table(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < 2000000; i++)
        for (struct entry *entry = buckets[next_random() % BUCKETS]; entry; entry = entry->next)
            sum += entry->value[0];
    sink = sum;
}

int main(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        add_to_list(i);
        add_to_tree();
        add_to_table();
    }
    for (int turn = 0; turn < TURNS; turn++) {
        read_list();
        read_tree();
        read_table();
    }
    return 0;
}
