#include "protocol/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"

static const char *const names[] = {
    [LOG_ERR] = "err", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};
_Static_assert(sizeof names / sizeof names[0] == LOG_LEVEL_COUNT, "a name per level");

/* Prevents log injection: texts from peers must not reach a terminal as orders, or fake a line. */
static void escape(char *text)
{
    utf8_scrub(text);
    for (char *p = text; *p != 0; p++) {
        *p = *p == '\n' || *p == '\t' ? '?' : *p;
    }
}

/* Syslog priorities, which journald reads from "<N>" at the start of a line (sd-daemon(3)). */
static const int priorities[] = {[LOG_ERR] = 3, [LOG_WARN] = 4, [LOG_INFO] = 6, [LOG_DEBUG] = 7};
_Static_assert(sizeof priorities / sizeof priorities[0] == LOG_LEVEL_COUNT, "a priority per level");

static bool journal_prefix;

static void to_stderr(enum log_level level, const char *event, const char *text, void *self)
{
    char stamp[CLOCK_ISO_LEN + 1];
    char line[1400];
    int n;

    (void)self;
    if (journal_prefix) { /* the journal adds its own time */
        n = snprintf(line, sizeof line, "<%d>%s %s\n", priorities[level], event, text);
    } else {
        clock_iso(clock_wall_ms(), stamp);
        n = snprintf(line, sizeof line, "%s %s %s %s\n", stamp, names[level], event, text);
    }
    if (n > 0) {
        size_t len = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
        line[len - 1] = '\n';
        (void)!write(STDERR_FILENO, line, len);
    }
}

static enum log_level threshold = LOG_INFO;
static log_sink sink_fn = to_stderr;
static void *sink_self;

void log_setup(enum log_level max_level, log_sink sink, void *self)
{
    threshold = max_level;
    sink_fn = sink != NULL ? sink : to_stderr;
    sink_self = self;
}

void log_use_journal_prefix(bool on)
{
    journal_prefix = on;
}

bool log_has_journal_prefix(void)
{
    return journal_prefix;
}

enum log_level log_max_level(void)
{
    return threshold;
}

enum log_level log_level_from_name(const char *name)
{
    int i = 0;
    while (i < LOG_LEVEL_COUNT && strcmp(names[i], name) != 0) {
        i++;
    }
    return (enum log_level)i;
}

void log_event(enum log_level level, const char *event, const char *fmt, ...)
{
    char text[1200];
    va_list args;

    if (level > threshold) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    escape(text);
    sink_fn(level, event, text, sink_self);
}
