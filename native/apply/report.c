/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "report.h"
#include <string.h>

/* The C library's own functions may allocate. */
struct line {
    char text[200];
    size_t length;
};

static void add(struct line *line, const char *text)
{
    for (; *text && line->length < sizeof line->text; text++)
        line->text[line->length++] = *text;
}

static void add_number(struct line *line, uint64_t number)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    add(line, digits + at);
}

static void add_nodes(struct line *line, const struct object *object)
{
    struct nodes said = {{0}};
    int count = 0;
    add(line, " on nodes");
    for (int i = 0; i < FRACTIONS && count < 8; i++) {
        uint16_t node = object->node[i];
        if (node == NO_NODE || said.bits[node / 64] >> node % 64 & 1)
            continue;
        said.bits[node / 64] |= 1UL << node % 64;
        count++;
        add(line, " ");
        add_number(line, node);
    }
}

void report_first(const struct object *object, uint64_t bytes)
{
    static const char *const POLICIES[] = {"", "parts", "interleaved", "weighted", "near its user", "padded", ""};
    static const char *const PAGES[] = {"", "huge pages", "small pages"};
    struct line line = {.length = 0};
    add(&line, "numa: object ");
    add_number(&line, object->number);
    add(&line, object->kind == OF_VARIABLE ? ", a variable of " : ", first block of ");
    add_number(&line, bytes);
    add(&line, " bytes: ");
    add(&line, POLICIES[object->policy]);
    if (object->policy == AS_PARTS)
        add_nodes(&line, object);
    if (object->pages && *POLICIES[object->policy])
        add(&line, ", ");
    add(&line, PAGES[object->pages]);
    if (line.length == sizeof line.text)
        line.length--;
    line.text[line.length++] = '\n';
    os_say(line.text, line.length);
}
