/* stdout as a whole: it is there when the program starts, and its errors are found at the end. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "supervisor/cli/common/cli.h"

/* Call first. A closed stdin, stdout or stderr gets a descriptor on which reading and writing fail,
 * so that no file or socket takes its number. */
void output_reserve_streams(void);
/* Writes out what is buffered. True when all output so far was written; a reader that has closed
 * its end of the pipe wants no more, and is the end of the output too: false. */
bool output_flush(void);
/* Call last. The exit code of the verb, or CLI_INTERNAL instead of CLI_OK when output was lost,
 * with the error printed. A reader that has closed its end of the pipe is no error. */
enum cli_exit output_finish(enum cli_exit code);
#endif
