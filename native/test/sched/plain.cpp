// SPDX-License-Identifier: MIT OR Apache-2.0
// Loops as g++ compiles them: iterators, exceptions inside of an iteration, classes as reductions; and the header in C++.
#include "numasched.h"
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

struct Sum {
    long value = 0;
    Sum &operator+=(const Sum &other)
    {
        value += other.value;
        return *this;
    }
};
#pragma omp declare reduction(+ : Sum : omp_out += omp_in)

static long with_openmp()
{
    std::vector<int> seen(5000, 0);
    Sum sum;
    std::atomic<long> caught{0};
    long last = 0;
#pragma omp parallel for schedule(dynamic, 3) num_threads(4) reduction(+ : sum) lastprivate(last)
    for (auto at = seen.begin(); at < seen.end(); ++at) {
        try {
            ++*at;
            last = at - seen.begin();
            sum.value += last;
            if (last % 100 == 0)
                throw std::runtime_error("in an iteration");
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    long wrong = sum.value != 5000L * 4999 / 2 || last != 4999 || caught != 50;
    for (int times : seen)
        wrong += times != 1;
    return wrong;
}

static long with_threads()
{
    std::vector<std::atomic<int>> seen(5000);
    std::vector<std::thread> threads;
    numasched_team *team = numasched_create(3);
    for (unsigned member = 0; member < 3; member++)
        threads.emplace_back([=, &seen] {
            long long from, to;
            numasched_begin(team, member, 0, 5000, 1, 16);
            while (numasched_next(team, member, &from, &to))
                for (long long i = from; i < to; i++)
                    seen[static_cast<size_t>(i)]++;
            numasched_end(team, member);
        });
    for (auto &thread : threads)
        thread.join();
    numasched_destroy(team);
    long wrong = 0;
    for (auto &times : seen)
        wrong += times != 1;
    return wrong;
}

int main()
{
    long wrong = 0;
    for (int round = 0; round < 50; round++)
        wrong += with_openmp() + with_threads();
    std::printf("%ld failures\n", wrong);
    return wrong != 0;
}
