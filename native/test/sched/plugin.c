/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A module with OpenMP that a program without it loads. Its caller counts. */
int plugin_run(unsigned char *seen, int count, void (*inside)(void));

int plugin_run(unsigned char *seen, int count, void (*inside)(void))
{
    long sum = 0;
#pragma omp parallel num_threads(3) reduction(+ : sum)
    {
#pragma omp for schedule(dynamic, 2)
        for (int i = 0; i < count; i++) {
            __atomic_fetch_add(&seen[i], 1, __ATOMIC_RELAXED);
            sum++;
            if (inside && i % 100 == 0)
                inside();
        }
    }
    return (int)sum;
}
