/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "os.h"
#include "base/call.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

static int error_of(long result)
{
    return result < 0 ? (int)-result : 0;
}

size_t os_page_bytes(void)
{
    size_t bytes = getauxval(AT_PAGESZ);
    return bytes ? bytes : 4096;
}

int os_set_policy(uintptr_t from, size_t bytes, int mode, const struct nodes *nodes, bool moves)
{
    /* The kernel takes one bit less than it is told. */
    unsigned long bits = nodes ? MAX_NODES + 1 : 0;
    return error_of(CALL(SYS_mbind, from, bytes, mode, nodes, bits, moves ? MPOL_MF_MOVE : 0));
}

int os_advise(uintptr_t from, size_t bytes, int advice)
{
    return error_of(CALL(SYS_madvise, from, bytes, advice));
}

bool os_nodes_of(void **pages, size_t count, int *nodes)
{
    return CALL(SYS_move_pages, 0, count, pages, NULL, nodes, 0) >= 0;
}

unsigned os_node(void)
{
    unsigned node = 0;
    return CALL(SYS_getcpu, NULL, &node, NULL) < 0 ? 0 : node;
}

int os_mask(struct cpus *mask)
{
    memset(mask, 0, sizeof *mask);
    return error_of(CALL(SYS_sched_getaffinity, 0, sizeof *mask, mask));
}

int os_set_mask(const struct cpus *mask)
{
    return error_of(CALL(SYS_sched_setaffinity, 0, sizeof *mask, mask));
}

void *os_map_at(uintptr_t address, size_t bytes, bool *is_taken)
{
    enum { FIXED_NOREPLACE = 0x100000 };
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | FIXED_NOREPLACE;
    long result = CALL(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    void *memory = memory_of(result);
    *is_taken = result == -EEXIST || (memory && (uintptr_t)memory != address);
    /* Before Linux 4.17 the address is a wish. */
    if (memory && (uintptr_t)memory != address) {
        os_unmap(memory, bytes);
        return NULL;
    }
    return memory;
}

size_t os_free_memory(void)
{
    struct sysinfo info;
    return CALL(SYS_sysinfo, &info) < 0 ? 0 : info.freeram * info.mem_unit;
}

size_t os_most_mappings(void)
{
    enum { USUAL = 65530 };
    char text[24] = "";
    long file = CALL(SYS_openat, AT_FDCWD, "/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return USUAL;
    long length = CALL(SYS_read, file, text, sizeof text - 1);
    CALL(SYS_close, file);
    size_t most = length > 0 ? strtoul(text, NULL, 10) : 0;
    return most ? most : USUAL;
}

void os_wait(_Atomic uint32_t *word, uint32_t value)
{
    struct timespec time = {0, 1000000};
    CALL(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time);
}

void os_say(const char *text, size_t length)
{
    CALL(SYS_write, STDERR_FILENO, text, length);
}
