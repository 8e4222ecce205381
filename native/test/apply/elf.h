/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a cure says of a file: its build ID, and addresses and sizes of its variables. */
#ifndef ELF_OF_TEST_H
#define ELF_OF_TEST_H

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static inline const char *elf_map(const char *path)
{
    struct stat data;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &data)) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(97);
    }
    const char *content = mmap(NULL, (size_t)data.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    return content;
}

static inline const Elf64_Shdr *elf_section(const char *content, uint32_t type, const char *name)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)content;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(content + head->e_shoff);
    const char *names = content + sections[head->e_shstrndx].sh_offset;
    for (int i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == type && (!name || strcmp(names + sections[i].sh_name, name) == 0))
            return &sections[i];
    return NULL;
}

static inline size_t elf_build_id(const char *path, uint8_t *id)
{
    const char *content = elf_map(path);
    const Elf64_Shdr *section = elf_section(content, SHT_NOTE, ".note.gnu.build-id");
    if (!section)
        return 0;
    const Elf64_Nhdr *note = (const Elf64_Nhdr *)(content + section->sh_offset);
    memcpy(id, content + section->sh_offset + sizeof *note + (note->n_namesz + 3) / 4 * 4, note->n_descsz);
    return note->n_descsz;
}

static inline int elf_variable(const char *path, const char *name, uint64_t *address, uint64_t *bytes)
{
    const char *content = elf_map(path);
    const Elf64_Shdr *table = elf_section(content, SHT_SYMTAB, NULL);
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(content + ((const Elf64_Ehdr *)content)->e_shoff);
    const char *names = content + sections[table->sh_link].sh_offset;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(content + table->sh_offset);
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++)
        if (strcmp(names + symbols[i].st_name, name) == 0 && symbols[i].st_size) {
            *address = symbols[i].st_value;
            *bytes = symbols[i].st_size;
            return 1;
        }
    return 0;
}

#endif
