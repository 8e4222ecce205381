// Data structures with known access patterns, one by name, until it is killed.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <unordered_map>
#include <vector>

static uint64_t state = 88172645463325252ull;
static uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

volatile uint64_t sink;

static void tree() {
    std::map<uint64_t, uint64_t> map;
    for (int i = 0; i < 200000; i++) map[next() % 1000000] = i;
    for (uint64_t sum = 0;; sink = sum) {
        auto found = map.lower_bound(next() % 1000000);
        if (found != map.end()) sum += found->second;
    }
}

static void hash() {
    std::unordered_map<uint64_t, uint64_t> map;
    for (int i = 0; i < 200000; i++) map[next() % 1000000] = i;
    for (uint64_t sum = 0;; sink = sum) {
        auto found = map.find(next() % 1000000);
        if (found != map.end()) sum += found->second;
    }
}

struct Node {
    Node *next;
    uint64_t value;
    char rest[48];
};

static void list() {
    const size_t count = 100000;
    std::vector<Node> nodes(count);
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = count - 1; i > 0; i--) std::swap(order[i], order[next() % i]);
    for (size_t i = 0; i < count; i++) nodes[order[i]] = {&nodes[order[(i + 1) % count]], i, {}};
    uint64_t sum = 0;
    for (Node *at = nodes.data();; at = at->next) {
        sum += at->value;
        sink = sum;
    }
}

static void search() {
    std::vector<uint64_t> sorted(1 << 20);
    for (size_t i = 0; i < sorted.size(); i++) sorted[i] = 3 * i;
    for (uint64_t sum = 0;; sink = sum) {
        uint64_t wanted = next() % (3 << 20);
        size_t low = 0, high = sorted.size();
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (sorted[middle] < wanted) low = middle + 1;
            else high = middle;
        }
        sum += low;
    }
}

static void breadth() {
    const uint32_t count = 100000, degree = 8;
    std::vector<uint32_t> start(count + 1), edges(count * degree), depth(count), queue(count);
    for (uint32_t i = 0; i <= count; i++) start[i] = i * degree;
    for (auto &edge : edges) edge = next() % count;
    for (;;) {
        std::fill(depth.begin(), depth.end(), UINT32_MAX);
        size_t head = 0, tail = 0;
        queue[tail++] = next() % count;
        depth[queue[0]] = 0;
        while (head < tail) {
            uint32_t node = queue[head++];
            for (uint32_t e = start[node]; e < start[node + 1]; e++) {
                uint32_t to = edges[e];
                if (depth[to] == UINT32_MAX) {
                    depth[to] = depth[node] + 1;
                    queue[tail++] = to;
                }
            }
        }
        sink = tail;
    }
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "map")) tree();
    if (!strcmp(what, "hash")) hash();
    if (!strcmp(what, "list")) list();
    if (!strcmp(what, "search")) search();
    if (!strcmp(what, "breadth")) breadth();
    fprintf(stderr, "structures: map, hash, list, search or breadth\n");
    return 2;
}
