/* full     fills a variable of 300 MiB, and prints where its pages are. It ends with status 7. */
#define _GNU_SOURCE
#include "placement.h"

enum { MIB = 300 };

char table[MIB << 20];

int main(void)
{
    long pages[MAX_NODES] = {0};
    touch_pages(table, sizeof table);
    count_pages(table, sizeof table, pages);
    print_pages("pages_on_node", pages);
    return 7;
}
