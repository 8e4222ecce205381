// SPDX-License-Identifier: MIT OR Apache-2.0
// The interface from C++, with the threads of its library.
#include "numaplace.h"
#include <cstring>
#include <thread>

int main()
{
    int core = -2;
    numaplace_phase_begin("threads");
    std::thread thread([&] { core = numaplace_core(); });
    thread.join();
    numaplace_phase_end("threads");
    return core >= 0 && std::strcmp(numaplace_version(), NUMAPLACE_VERSION) == 0 ? 0 : 1;
}
