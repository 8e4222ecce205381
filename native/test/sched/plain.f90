! SPDX-License-Identifier: MIT OR Apache-2.0
! Loops as gfortran compiles them, and numasched.h in Fortran.
module numasched
    use, intrinsic :: iso_c_binding
    implicit none
    interface
        function numasched_create(members) bind(c)
            import :: c_int, c_ptr
            integer(c_int), value :: members
            type(c_ptr) :: numasched_create
        end function
        subroutine numasched_destroy(team) bind(c)
            import :: c_ptr
            type(c_ptr), value :: team
        end subroutine
        function numasched_begin(team, member, first, behind, step, chunk) bind(c)
            import :: c_ptr, c_int, c_long_long
            type(c_ptr), value :: team
            integer(c_int), value :: member
            integer(c_long_long), value :: first, behind, step, chunk
            integer(c_int) :: numasched_begin
        end function
        function numasched_next(team, member, from, to) bind(c)
            import :: c_ptr, c_int, c_long_long
            type(c_ptr), value :: team
            integer(c_int), value :: member
            integer(c_long_long) :: from, to
            integer(c_int) :: numasched_next
        end function
        subroutine numasched_end(team, member) bind(c)
            import :: c_ptr, c_int
            type(c_ptr), value :: team
            integer(c_int), value :: member
        end subroutine
    end interface
end module

program plain
    use numasched
    implicit none
    integer, parameter :: n = 4000
    integer :: seen(n), i, j, last, wrong, round
    integer(8) :: total
    type(c_ptr) :: team
    integer(c_long_long) :: from, to, k

    wrong = 0
    do round = 1, 30
        seen = 0
        total = 0
        last = 0
        !$omp parallel do schedule(dynamic, 5) num_threads(4) reduction(+:total) lastprivate(last)
        do i = n, 1, -1
            seen(i) = seen(i) + 1
            total = total + i
            last = i
        end do
        !$omp end parallel do
        !$omp parallel num_threads(3)
        !$omp do schedule(guided) collapse(2)
        do i = 1, n / 10
            do j = 1, 10
                seen((i - 1) * 10 + j) = seen((i - 1) * 10 + j) + 1
            end do
        end do
        !$omp end do nowait
        !$omp do schedule(runtime)
        do i = 1, n, 2
            !$omp atomic
            seen(i) = seen(i) + 1
        end do
        !$omp end do
        !$omp end parallel
        if (last /= 1 .or. total /= int(n, 8) * (n + 1) / 2) wrong = wrong + 1
        wrong = wrong + count(seen(1:n:2) /= 3) + count(seen(2:n:2) /= 2)
    end do
    team = numasched_create(1)
    seen = 0
    if (numasched_begin(team, 0, 1_8, int(n + 1, 8), 1_8, 7_8) /= 0) wrong = wrong + 1
    do while (numasched_next(team, 0, from, to) /= 0)
        do k = from, to - 1
            seen(k) = seen(k) + 1
        end do
    end do
    call numasched_end(team, 0)
    call numasched_destroy(team)
    wrong = wrong + count(seen /= 1)
    print '(i0, a)', wrong, ' failures'
    if (wrong /= 0) stop 1
end program
