// A program that does nothing: what an allocator takes when it starts. A unit is a start.

#include "work.h"

int main(void)
{
    return done(1);
}
