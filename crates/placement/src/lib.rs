//! From a request and a topology to a plan, and from a plan to the lines that launchers want.
//! Pure: what is taken already comes in as a value.
