/* npb_fortran NAME broken|repaired [REPEATS]
 *
 *   mg  sweeps over a grid
 *   ft  transforms of columns, with transposition
 *
 * The kernels are in npb_fortran.f90. */
#define _GNU_SOURCE
#include "npb.h"

void mg_prepare(int), mg_work(int), ft_prepare(int), ft_work(int);
int mg_is_right(void), ft_is_right(void);

static const struct kernel kernels[] = {
    {"mg", mg_prepare, mg_work, mg_is_right, 8, false, false},
    {"ft", ft_prepare, ft_work, ft_is_right, 4, false, false},
};

int main(int count, char **words)
{
    return run_kernel(kernels, sizeof kernels / sizeof *kernels, count, words);
}
