/* solve.c: solves N equations with ScaLAPACK, on a grid of one row of ranks. The solution is 1 for all unknowns. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
void Cblacs_gridexit(int context);
int numroc_(const int *n, const int *block, const int *own, const int *first, const int *all);
void descinit_(int *d, const int *m, const int *n, const int *mb, const int *nb, const int *row, const int *column,
               const int *context, const int *leading, int *info);
void pdgesv_(const int *n, const int *right, double *a, const int *ia, const int *ja, const int *da, int *pivots,
             double *b, const int *ib, const int *jb, const int *db, int *info);

static const int zero, one = 1, block = 64;

static double element(int row, int column, int n)
{
    return row == column ? n : (double)((row * 31 + column * 17) % 101) / 101;
}

/* Columns of the matrix are dealt to the ranks in blocks; rank 0 has the right side. */
static void fill(double *a, double *b, int n, int columns, int rank, int ranks)
{
    for (int j = 0; j < columns; j++) {
        int column = (j / block * ranks + rank) * block + j % block;
        for (int i = 0; i < n; i++)
            a[(size_t)j * (size_t)n + (size_t)i] = element(i, column, n);
    }
    for (int i = 0; i < n && rank == 0; i++)
        for (int j = b[i] = 0; j < n; j++)
            b[i] += element(i, j, n);
}

int main(int argc, char **argv)
{
    int context, rows, ranks, row, rank, info, of_matrix[9], of_right[9];
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", 1, ranks);
    Cblacs_gridinfo(context, &rows, &ranks, &row, &rank);
    int n = argc > 1 ? atoi(argv[1]) : 2000;
    int columns = numroc_(&n, &block, &rank, &zero, &ranks);
    double *a = malloc(sizeof *a * (size_t)n * (size_t)(columns + 1));
    double *b = malloc(sizeof *b * (size_t)n);
    int *pivots = malloc(sizeof *pivots * (size_t)(n + block));
    if (!a || !b || !pivots)
        MPI_Abort(MPI_COMM_WORLD, 1);
    fill(a, b, n, columns, rank, ranks);
    descinit_(of_matrix, &n, &n, &block, &block, &zero, &zero, &context, &n, &info);
    descinit_(of_right, &n, &one, &block, &block, &zero, &zero, &context, &n, &info);
    double began = MPI_Wtime(), worst = 0;
    pdgesv_(&n, &one, a, &one, &one, of_matrix, pivots, b, &one, &one, of_right, &info);
    double took = MPI_Wtime() - began;
    for (int i = 0; i < n && rank == 0; i++)
        worst = fmax(worst, fabs(b[i] - 1));
    int wrong = info != 0 || worst > 1e-9;
    if (rank == 0)
        printf("%s: %.2f GFLOP/s, %.2f s\n", wrong ? "WRONG" : "solved", 2.0 * n * n * n / 3 / took / 1e9, took);
    Cblacs_gridexit(context);
    MPI_Finalize();
    return wrong;
}
