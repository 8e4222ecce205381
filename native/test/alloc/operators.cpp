// SPDX-License-Identifier: MIT OR Apache-2.0
// All forms of new and delete: operators [threads]. A failed check ends the process with status 1 and prints where.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                               \
            std::_Exit(1);                                                                                             \
        }                                                                                                              \
    } while (0)

namespace {

using std::align_val_t;
using std::nothrow;

std::size_t unknown(std::size_t size)
{
    __asm__ volatile("" : "+r"(size));
    return size;
}

// The compiler may leave out what nobody sees.
void *volatile seen;

bool is_aligned(const void *block, std::size_t alignment)
{
    return block && reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

void every_form(std::size_t size)
{
    auto touched = [size](void *block) { return std::memset(block, 1, size); };
    void *nothing = ::operator new(unknown(0));
    CHECK(nothing);
    ::operator delete(nothing);
    ::operator delete(touched(::operator new(size)));
    ::operator delete(touched(::operator new(size)), size);
    ::operator delete(touched(::operator new(size, nothrow)), nothrow);
    ::operator delete[](touched(::operator new[](size)));
    ::operator delete[](touched(::operator new[](size)), size);
    ::operator delete[](touched(::operator new[](size, nothrow)), nothrow);
    for (std::size_t bytes = 1; bytes <= std::size_t(1) << 21; bytes *= 8) {
        auto alignment = align_val_t(bytes);
        void *block = ::operator new(size, alignment);
        CHECK(is_aligned(block, bytes));
        ::operator delete(touched(block), alignment);
        block = ::operator new(size, alignment);
        ::operator delete(touched(block), size, alignment);
        block = ::operator new(size, alignment, nothrow);
        CHECK(is_aligned(block, bytes));
        ::operator delete(touched(block), alignment, nothrow);
        block = ::operator new[](size, alignment);
        CHECK(is_aligned(block, bytes));
        ::operator delete[](touched(block), alignment);
        block = ::operator new[](size, alignment);
        ::operator delete[](touched(block), size, alignment);
        block = ::operator new[](size, alignment, nothrow);
        CHECK(is_aligned(block, bytes));
        ::operator delete[](touched(block), alignment, nothrow);
    }
    ::operator delete(static_cast<void *>(nullptr));
    ::operator delete[](nullptr, align_val_t(64));
}

template <typename Call> bool throws(Call call)
{
    try {
        call();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

int calls;

void give_up()
{
    if (++calls == 3)
        std::set_new_handler(nullptr);
}

struct other_error {};

template <typename Call> void is_refused(Call call)
{
    std::set_new_handler(nullptr);
    CHECK(throws(call));
    // The handler is called until there is none.
    calls = 0;
    std::set_new_handler(give_up);
    CHECK(throws(call) && calls == 3);
    std::set_new_handler([] { throw other_error(); });
    bool other = false;
    try {
        call();
    } catch (const other_error &) {
        other = true;
    }
    std::set_new_handler(nullptr);
    CHECK(other);
}

void refusals()
{
    // The C++ library rounds up to the alignment without a look at an overflow.
    for (std::size_t size : {SIZE_MAX - 5000, SIZE_MAX / 2 + 1, SIZE_MAX / 2}) {
        is_refused([=] { seen = ::operator new(unknown(size)); });
        is_refused([=] { seen = ::operator new[](unknown(size)); });
        is_refused([=] { seen = ::operator new(unknown(size), align_val_t(64)); });
        is_refused([=] { seen = ::operator new[](unknown(size), align_val_t(4096)); });
        calls = 0;
        std::set_new_handler(give_up);
        CHECK(!(seen = ::operator new(unknown(size), nothrow)) && calls == 3);
        CHECK(!(seen = ::operator new[](unknown(size), nothrow)));
        CHECK(!(seen = ::operator new(unknown(size), align_val_t(64), nothrow)));
        CHECK(!(seen = ::operator new[](unknown(size), align_val_t(64), nothrow)));
        std::set_new_handler([] { throw std::bad_alloc(); });
        CHECK(!(seen = ::operator new(unknown(size), nothrow)));
        CHECK(!(seen = ::operator new(unknown(size), align_val_t(64), nothrow)));
        std::set_new_handler(nullptr);
    }
}

struct alignas(256) wide {
    char bytes[300];
    std::string text = std::string(100, 'x');
};

void containers(int seed)
{
    std::map<int, std::string> texts;
    std::vector<std::unique_ptr<wide>> wides;
    for (int i = 0; i < 3000; i++) {
        texts[(i * 7919 + seed) % 1009] += std::string(std::size_t(i % 50), char('a' + i % 26));
        wides.push_back(std::make_unique<wide>());
        CHECK(is_aligned(wides.back().get(), 256));
        if (i % 3 == 0)
            wides.erase(wides.begin() + std::ptrdiff_t(wides.size() / 2));
    }
    std::size_t sum = 0;
    for (const auto &text : texts)
        sum += text.second.size();
    CHECK(sum == 3000 / 50 * 1225);
}

// A thread's objects are destroyed at its end, after its destructors of keys or before.
thread_local std::vector<std::string> of_thread;

void run_thread(int seed)
{
    of_thread.assign(100, std::string(std::size_t(seed) * 100 + 30, 'y'));
    containers(seed);
    every_form(std::size_t(seed) * 1000 + 1);
    CHECK(throws([] { throw std::bad_alloc(); }));
}

} // namespace

int main()
{
    for (std::size_t size = 1; size < std::size_t(4) << 20; size = size * 5 + 3)
        every_form(size);
    refusals();
    containers(1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back(run_thread, i);
    for (auto &thread : threads)
        thread.join();
}
