/* What the verbs that draw share: the terminal, the forms of a picture. */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include "protocol/base/buf.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/picture/look.h"

enum { SCREEN_BYTES_MAX = 256 << 20 };

/*
 * How stdout looks: COLUMNS, else the terminal's columns, else 80; characters of ASCII when the
 * locale is not UTF-8; colours on a terminal.
 */
struct look screen_look(const struct cli *cli);
/* The one of `forms` (ends with NULL) that --output names, else the first. */
const char *screen_form(const struct cli *cli, const char *const *forms);
/* Writes the picture to stdout; what is lost of it is an error at the end of the program. */
void screen_write(const struct buf *picture);
#endif
