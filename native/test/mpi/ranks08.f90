! SPDX-License-Identifier: MIT OR Apache-2.0
! The same calls from Fortran, by the module mpi_f08.
program ranks08
    use mpi_f08
    implicit none
    integer :: rank, size, i
    double precision :: one, total, many(1000)
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    do i = 1, 10
        call MPI_Barrier(MPI_COMM_WORLD)
        one = rank + 1
        call MPI_Allreduce(one, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
        if (total /= size * (size + 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 1)
        total = one
        call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
        if (total /= size * (size + 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 2)
        many = rank
        call MPI_Bcast(many, 1000, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
    end do
    call MPI_Finalize()
    if (rank == 0) print '(a)', 'all results are right'
end program
