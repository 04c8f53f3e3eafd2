#include "supervisor/cli/view/screen.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "supervisor/cli/common/text.h"

enum { COLUMNS_DEFAULT = 80, COLUMNS_MIN = 20, COLUMNS_MAX = 10000 };

static int columns(void)
{
    const char *given = getenv("COLUMNS");
    const long n = given != NULL ? strtol(given, NULL, 10) : 0;
    struct winsize size = {0};
    int width = COLUMNS_DEFAULT;

    if (n > 0) {
        width = n < COLUMNS_MAX ? (int)n : COLUMNS_MAX;
    } else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        width = size.ws_col;
    }
    return width < COLUMNS_MIN ? COLUMNS_MIN : width;
}

static bool is_utf8(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    bool utf8 = false;

    if (locale != (locale_t)0) {
        utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
        freelocale(locale);
    }
    return utf8;
}

struct look screen_look(const struct cli *cli)
{
    return (struct look){
        .width = columns(), .ascii = !is_utf8(), .color = cli->color && isatty(STDOUT_FILENO) == 1};
}

const char *screen_form(const struct cli *cli, const char *const *forms)
{
    const char *given = cli_value(cli, "output");

    for (int i = 0; given != NULL && forms[i] != NULL; i++) {
        if (strcmp(given, forms[i]) == 0) {
            return forms[i];
        }
    }
    return forms[0]; /* also of data: usage_read_form knows every form */
}

void screen_write(const struct buf *picture)
{
    (void)fwrite(picture->at, 1, picture->len, stdout);
}
