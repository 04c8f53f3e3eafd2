/* Programs that the CLI starts, or speaks about. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the file, or one of that name in a folder of $PATH, can be executed. */
bool cli_program_is_there(const char *program);
/* The path of a program in the folder of this one, of fewer than cap bytes. False: where that is
 * cannot be told; ret says why. */
bool cli_program_beside(const char *name, char *ret, size_t cap);
#endif
