// map N: puts N random keys into an unordered_map, then looks each up.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <unordered_map>

static uint64_t next(uint64_t &state)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 20;
}

int main(int, char **arguments)
{
    const uint64_t count = strtoull(arguments[1], nullptr, 10);
    std::unordered_map<uint64_t, uint64_t> map;
    uint64_t state = 1;
    for (uint64_t k = 0; k < count; k++)
        map[next(state)] = k;
    uint64_t found = 0;
    state = 1;
    for (uint64_t k = 0; k < count; k++)
        found += map.at(next(state));
    std::cout << map.size() << ' ' << found << '\n';
}
