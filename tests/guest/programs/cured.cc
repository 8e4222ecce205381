// A std::vector that the first thread fills, or memory of `new` that its users touch first.
#include <memory>
#include <vector>

namespace {
const int words = 1 << 20;
std::vector<double> filled;
std::unique_ptr<double[]> untouched;
double *values;
int rounds;

void touch(double *memory)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < words; i++)
        memory[i] = 1;
}
} // namespace

extern "C" void vector_prepare(int is_repaired)
{
    if (is_repaired) {
        untouched.reset(new double[words]);
        values = untouched.get();
        touch(values);
        return;
    }
    filled.assign(words, 1);
    values = filled.data();
}

extern "C" void vector_work(int repeats)
{
    for (rounds = 0; rounds < repeats; rounds++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < words; i++)
            values[i] += 1;
    }
}

extern "C" int vector_is_right(void)
{
    return values[0] == rounds + 1 && values[words - 1] == rounds + 1;
}
