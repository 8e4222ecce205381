/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef MPI_SETTINGS_H
#define MPI_SETTINGS_H

#include <stdbool.h>

/* Whose collectives a program has. */
enum collectives {
    OF_THE_MPI,
    SMALL,      /* this library's, up to 4 KiB */
    AUTO,       /* this library's, where the machine's table says that it pays */
    MEASURE     /* both are measured, and the program ends before it begins */
};

/* What the environment says when MPI begins. */
struct settings {
    enum collectives collectives;   /* NUMAMPI_COLLECTIVES=auto|small|measure */
    const char *table;              /* NUMAMPI_TABLE: the path of the machine's table, or of the file for its new lines; NULL: none */
    bool has_statistics;            /* NUMAMPI_STATS=1 */
    int nodes;                      /* NUMAMPI_NODES: as many are pretended; 0: those of the machine */
    int cpus;                       /* NUMAMPI_CPUS: as many are pretended; 0: those that ranks may use */
};

const struct settings *settings(void);

/* A setting that is none has no effect; `complain` is called with its name, its value and an example. */
void settings_read(char **environment, void (*complain)(const char *name, const char *value, const char *example));

#endif
