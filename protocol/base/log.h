/*
 * Logging for the rooms with I/O and for programs: an event name and key=value text
 * ("step.dispatched", "plan=%s step=%u"). The sink is a callback. The default sink writes logfmt
 * lines to stderr, with syslog priorities when asked. Control characters in values are replaced by
 * '?'. Pure rooms never log. log_event is thread-safe.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "baton/error.h"

enum log_level { LOG_ERR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVEL_COUNT };

typedef void (*log_sink)(enum log_level level, const char *event, const char *text, void *self);

/* sink NULL = the default one, which writes to stderr. Call before threads start. */
void log_setup(enum log_level max_level, log_sink sink, void *self);
/* The default sink writes "<N>event text" without a time, as systemd's journal expects
 * (sd-daemon(3)). Call before threads start. */
void log_use_journal_prefix(bool on);
bool log_has_journal_prefix(void);
enum log_level log_max_level(void);
/* Maps "err", "warn", "info" and "debug"; LOG_LEVEL_COUNT for any other name. */
enum log_level log_level_from_name(const char *name);
void log_event(enum log_level level, const char *event, const char *fmt, ...) BT_PRINTF(3, 4);

#define log_err(...) log_event(LOG_ERR, __VA_ARGS__)
#define log_warn(...) log_event(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_event(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_DEBUG, __VA_ARGS__)
#endif
