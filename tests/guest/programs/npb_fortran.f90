! Kernels in Fortran, with their arrays in modules. Broken, the main thread touches all of them first.

! Two sweeps over a grid of 96 x 96 x 96: the residual, and its part that is added.
module grids
  use iso_c_binding
  implicit none
  integer, parameter :: edge = 96
  real(8) :: u(edge, edge, edge), side(edge, edge, edge), rest(edge, edge, edge)
  real(8) :: start = 0, last
contains

  subroutine mg_prepare(is_repaired) bind(c)
    integer(c_int), value :: is_repaired
    integer :: z
    !$omp parallel do schedule(static) if(is_repaired /= 0)
    do z = 1, edge
      u(:, :, z) = 0
      rest(:, :, z) = 0
      side(:, :, z) = mod(z, 17) - 8
    end do
  end subroutine

  real(8) function residual()
    integer :: x, y, z
    real(8) :: total
    total = 0
    !$omp parallel do schedule(static) reduction(+:total)
    do z = 2, edge - 1
      do y = 2, edge - 1
        do x = 2, edge - 1
          rest(x, y, z) = side(x, y, z) - 6 * u(x, y, z) + u(x - 1, y, z) + u(x + 1, y, z) &
                        + u(x, y - 1, z) + u(x, y + 1, z) + u(x, y, z - 1) + u(x, y, z + 1)
          total = total + rest(x, y, z)**2
        end do
      end do
    end do
    residual = total
  end function

  subroutine mg_work(repeats) bind(c)
    integer(c_int), value :: repeats
    integer :: repeat, z
    last = residual()
    if (start == 0) start = last
    do repeat = 1, repeats
      !$omp parallel do schedule(static)
      do z = 2, edge - 1
        u(:, :, z) = u(:, :, z) + rest(:, :, z) / 8
      end do
      last = residual()
    end do
  end subroutine

  integer(c_int) function mg_is_right() bind(c)
    mg_is_right = merge(1, 0, last < 0.9 * start)
  end function
end module

! Transforms of the columns of many matrices, transposed in between: of Hadamard, which twice is the
! identity.
module transforms
  use iso_c_binding
  implicit none
  integer, parameter :: n = 64, many = 256
  real(8) :: field(n, n, many), turned(n, n, many)
contains

  subroutine ft_prepare(is_repaired) bind(c)
    integer(c_int), value :: is_repaired
    integer :: m
    !$omp parallel do schedule(static) if(is_repaired /= 0)
    do m = 1, many
      field(:, :, m) = 0
      field(3, 5, m) = m
      turned(:, :, m) = 0
    end do
  end subroutine

  subroutine transform(column)
    real(8), intent(inout) :: column(n)
    real(8) :: low, high
    integer :: half, first, i
    half = 1
    do while (half < n)
      do first = 1, n, 2 * half
        do i = first, first + half - 1
          low = column(i)
          high = column(i + half)
          column(i) = low + high
          column(i + half) = low - high
        end do
      end do
      half = 2 * half
    end do
    column = column / 8
  end subroutine

  subroutine pass(from, to)
    real(8), intent(inout) :: from(n, n, many), to(n, n, many)
    integer :: m, i, k
    !$omp parallel do schedule(static) private(i, k)
    do m = 1, many
      do k = 1, n
        call transform(from(:, k, m))
      end do
      do k = 1, n
        do i = 1, n
          to(i, k, m) = from(k, i, m)
        end do
      end do
    end do
  end subroutine

  subroutine ft_work(repeats) bind(c)
    integer(c_int), value :: repeats
    integer :: repeat
    do repeat = 1, 2 * repeats
      call pass(field, turned)
      call pass(turned, field)
    end do
  end subroutine

  integer(c_int) function ft_is_right() bind(c)
    integer :: m
    ft_is_right = 1
    do m = 1, many
      if (field(3, 5, m) /= m .or. field(1, 1, m) /= 0) ft_is_right = 0
    end do
  end function
end module
