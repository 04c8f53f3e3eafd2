/* A copy of the journal, some pages a cycle. */
#include <inttypes.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/retention/retention_internal.h"

enum { SLICE_PAGES = 128 /* half a megabyte */ };

enum bt_code retention_copy_begin(struct retention *r, const char *path, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (strlen(path) >= sizeof r->copy.path) {
        return err_set(err, BT_INVALID, "the name of the copy is too long");
    }
    code = journal_backup_begin(r->journal, path, err);
    if (code == BT_OK) {
        r->copy = (struct retention_copy){.running = true};
        memcpy(r->copy.path, path, strlen(path) + 1);
    }
    return code;
}

const struct retention_copy *retention_copy_state(const struct retention *r)
{
    return &r->copy;
}

void retention_copy_slice(struct retention *r)
{
    struct journal_backup now;

    r->copy.failed = journal_backup_step(r->journal, SLICE_PAGES, &now, &r->copy.why) != BT_OK;
    r->copy.running = !r->copy.failed && !now.done;
    r->copy.pages = now.pages;
    r->copy.left = now.left;
    if (r->copy.failed) {
        log_warn("journal.backup", "file=%s %s", r->copy.path, r->copy.why.msg);
    } else if (now.done) {
        log_info("journal.backup", "file=%s pages=%" PRIu64, r->copy.path, now.pages);
    }
}
