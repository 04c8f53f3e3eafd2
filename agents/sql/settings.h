/* The settings of the sql agent. */
#ifndef SQL_SETTINGS_H
#define SQL_SETTINGS_H

#include <limits.h>

#include "agents/sdk/confine.h"
#include "baton/agent.h"
#include "protocol/base/msec.h"

enum { SQL_ROWS_MAX = 100000, SQL_ROWS_DEFAULT = 100000 };

struct sql_settings {
    char dir[PATH_MAX];   /* real path: no symbolic link in it */
    struct confine roots; /* what load may read as `file` */
    bool read_only;       /* no skill `execute` */
    bool allow_load;
    uint32_t max_rows;
    msec busy_ms;          /* how long to wait for another writer */
    uint64_t max_db_bytes; /* the largest size of a database */
};

/* Reads the settings' JSON and makes a missing directory (0700). The caller frees with
 * sql_settings_free. */
BT_MUST_CHECK enum bt_code sql_settings_read(const char *json, struct sql_settings **ret,
                                             struct bt_error *err);
/* Accepts NULL. */
void sql_settings_free(struct sql_settings *s);
#endif
