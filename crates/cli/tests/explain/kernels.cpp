// Kernels with a known pattern of access: kernels KIND MIB SECONDS. Prints the nanoseconds of an operation. With few MiB
// the data fits the caches; the difference to many MiB is the time that goes to memory.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using u64 = std::uint64_t;

struct Random {
    u64 x = 88172645463325252u;
    u64 operator()() {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        return x;
    }
};

volatile u64 sink;

// Repeats a pass of an operation until the time has passed; returns ns per operation.
template <typename Pass>
double timed(double seconds, Pass pass) {
    using clock = std::chrono::steady_clock;
    u64 operations = 0;
    auto start = clock::now();
    double ran;
    do {
        operations += pass();
        ran = std::chrono::duration<double>(clock::now() - start).count();
    } while (ran < seconds);
    return ran * 1e9 / double(operations);
}

constexpr u64 PASS = 1 << 16;

[[gnu::noinline]] double hash_table(u64 bytes, double seconds) {
    std::unordered_map<u64, u64> table;
    u64 count = bytes / 40;
    for (u64 key = 0; key < count; key++) table[key * 0x9e3779b97f4a7c15u] = key;
    Random random;
    return timed(seconds, [&] {
        u64 sum = 0;
        for (u64 i = 0; i < PASS; i++) sum += table.find(random() % count * 0x9e3779b97f4a7c15u)->second;
        sink = sum;
        return PASS;
    });
}

[[gnu::noinline]] double tree(u64 bytes, double seconds) {
    std::map<u64, u64> tree;
    u64 count = bytes / 48;
    Random random;
    for (u64 key = 0; key < count; key++) tree[key * 0x9e3779b97f4a7c15u] = key;
    return timed(seconds, [&] {
        u64 sum = 0;
        for (u64 i = 0; i < PASS; i++) sum += tree.find(random() % count * 0x9e3779b97f4a7c15u)->second;
        sink = sum;
        return PASS;
    });
}

[[gnu::noinline]] double binary_search(u64 bytes, double seconds) {
    std::vector<u64> sorted(bytes / 8);
    std::iota(sorted.begin(), sorted.end(), 0);
    for (u64 &value : sorted) value *= ~u64(0) / sorted.size();
    Random random;
    return timed(seconds, [&] {
        u64 sum = 0;
        for (u64 i = 0; i < PASS; i++) sum += u64(std::lower_bound(sorted.begin(), sorted.end(), random()) - sorted.begin());
        sink = sum;
        return PASS;
    });
}

[[gnu::noinline]] double gather(u64 bytes, double seconds) {
    std::vector<u64> data(bytes / 8, 1);
    std::vector<std::uint32_t> index(PASS);
    Random random;
    for (auto &at : index) at = std::uint32_t(random() % data.size());
    u64 shift = 0;
    return timed(seconds, [&] {
        u64 sum = 0;
        shift = random() % data.size();
        for (u64 i = 0; i < PASS; i++) {
            u64 at = index[i] + shift;
            sum += data[at >= data.size() ? at - data.size() : at];
        }
        sink = sum;
        return PASS;
    });
}

[[gnu::noinline]] double update(u64 bytes, double seconds) {
    std::vector<u64> data(bytes / 8, 1);
    Random random;
    return timed(seconds, [&] {
        for (u64 i = 0; i < PASS; i++) data[random() % data.size()] += i;
        sink = data[0];
        return PASS;
    });
}

[[gnu::noinline]] double chain(u64 bytes, double seconds) {
    struct Link {
        Link *next;
        u64 rest[7];
    };
    std::vector<Link> links(bytes / sizeof(Link));
    std::vector<std::uint32_t> order(links.size());
    std::iota(order.begin(), order.end(), 0);
    Random random;
    for (u64 i = order.size() - 1; i > 0; i--) std::swap(order[i], order[random() % (i + 1)]);
    for (u64 i = 0; i < order.size(); i++) links[order[i]].next = &links[order[(i + 1) % order.size()]];
    Link *at = links.data();
    return timed(seconds, [&] {
        for (u64 i = 0; i < PASS; i++) at = at->next;
        sink = u64(at);
        return PASS;
    });
}

[[gnu::noinline]] double sum(u64 bytes, double seconds) {
    std::vector<double> data(bytes / 8, 1);
    return timed(seconds, [&] {
        double sum = 0;
        for (double value : data) sum += value;
        sink = u64(sum);
        return data.size();
    });
}

[[gnu::noinline]] double triad(u64 bytes, double seconds) {
    std::vector<double> a(bytes / 24), b(a.size(), 1), c(a.size(), 2);
    return timed(seconds, [&] {
        for (u64 i = 0; i < a.size(); i++) a[i] = b[i] + 3 * c[i];
        sink = u64(a[a.size() / 2]);
        return a.size();
    });
}

const std::map<std::string, double (*)(u64, double)> KERNELS = {
    {"hash-table", hash_table}, {"tree", tree}, {"binary-search", binary_search}, {"gather", gather},
    {"update", update}, {"chain", chain}, {"sum", sum}, {"triad", triad},
};

} // namespace

int main(int count, char **words) {
    auto kernel = count == 4 ? KERNELS.find(words[1]) : KERNELS.end();
    if (kernel == KERNELS.end()) return std::fprintf(stderr, "kernels KIND MIB SECONDS\n"), 2;
    u64 bytes = u64(std::atof(words[2]) * (1 << 20));
    std::printf("%.2f ns\n", kernel->second(bytes, std::atof(words[3])));
}
