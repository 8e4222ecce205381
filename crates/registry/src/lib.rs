//! Who holds which cores. One file for the machine, its locks are the kernel's: whatever is
//! killed, what it held is free.
