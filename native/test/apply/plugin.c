/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library that is loaded later, with a variable and a site. */
#define _GNU_SOURCE
#include "work.h"
#include <string.h>

char late[4 << 20];
static void *volatile kept;

const char *plugin_work(size_t size)
{
    kept = malloc(size);
    if (!has_quarters(kept, size))
        return "the block of the plugin has no parts";
    memset(kept, 1, size);
    memset(late, 1, sizeof late);
    free(kept);
    return has_quarters(late, sizeof late) ? NULL : "the variable of the plugin has no parts";
}

void plugin_free(void *block)
{
    free(block);
}
