! SPDX-License-Identifier: MIT OR Apache-2.0
! The same calls from Fortran, by the old interface.
program ranks
    implicit none
    include 'mpif.h'
    integer :: error, rank, size, i, next, before, status(MPI_STATUS_SIZE), half
    double precision :: one, total, many(1000), inside
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, size, error)
    next = mod(rank + 1, size)
    before = mod(rank + size - 1, size)
    do i = 1, 10
        call MPI_Barrier(MPI_COMM_WORLD, error)
        one = rank + 1
        call MPI_Allreduce(one, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
        if (total /= size * (size + 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 1, error)
        total = one
        call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
        if (total /= size * (size + 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 2, error)
        many = rank
        call MPI_Bcast(many, 1000, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, error)
        if (many(1000) /= 0) call MPI_Abort(MPI_COMM_WORLD, 3, error)
        call MPI_Sendrecv(one, 1, MPI_DOUBLE_PRECISION, next, 8, inside, 1, MPI_DOUBLE_PRECISION, before, 8, &
                          MPI_COMM_WORLD, status, error)
        if (inside /= before + 1) call MPI_Abort(MPI_COMM_WORLD, 4, error)
    end do
    call MPI_Comm_split(MPI_COMM_WORLD, 0, rank, half, error)
    call MPI_Barrier(half, error)
    call MPI_Comm_free(half, error)
    call MPI_Finalize(error)
    if (rank == 0) print '(a)', 'all results are right'
end program
