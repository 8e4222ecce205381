! SPDX-License-Identifier: MIT OR Apache-2.0
! The interface from Fortran.
program plain
   use, intrinsic :: iso_c_binding
   implicit none
   interface
      function numaplace_core() bind(c) result(core)
         import :: c_int
         integer(c_int) :: core
      end function
      function numaplace_node() bind(c) result(node)
         import :: c_int
         integer(c_int) :: node
      end function
      function numaplace_rebind() bind(c) result(error)
         import :: c_int
         integer(c_int) :: error
      end function
      function numaplace_phase_begin(name) bind(c) result(told)
         import :: c_int, c_char
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int) :: told
      end function
   end interface
   integer(c_int) :: told

   told = numaplace_phase_begin("fortran" // c_null_char)
   if (numaplace_core() /= -1) stop 1
   if (numaplace_rebind() /= 0) stop 2
   if (numaplace_core() < 0 .or. numaplace_node() /= 0 .or. told < 0) stop 3
end program
