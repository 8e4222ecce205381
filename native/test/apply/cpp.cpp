// SPDX-License-Identifier: MIT OR Apache-2.0
// cpp CASE     allocates by `new` and by a vector: the direct caller is the C++ library.
#include "work.h"
#include <cstring>
#include <vector>

static char *volatile kept;

static __attribute__((noinline)) char *made(size_t size)
{
    return kept = new char[size];
}

int main()
{
    for (int i = 0; i < 10; i++) {
        char *block = made(LARGE);
        CHECK(has_quarters(block, LARGE));
        memset(block, 1, LARGE);
        delete[] block;
    }
    std::vector<char> vector(800001);
    CHECK(has_quarters(vector.data(), vector.size()));
    return 0;
}
