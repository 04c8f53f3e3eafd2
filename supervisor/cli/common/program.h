/* Programs that the CLI starts, or speaks about. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include <stdbool.h>

/* Whether the file, or one of that name in a folder of $PATH, can be executed. */
bool cli_program_is_there(const char *program);
#endif
