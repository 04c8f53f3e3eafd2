/* supervisor.reload: the configuration again. */
#include <stdlib.h>

#include "supervisor/api/api.h"

enum { CHANGES_MAX = 1024 };

void on_supervisor_reload(struct engine *engine, struct request *rq)
{
    struct msg_supervisor_reload_ok ok = {0};
    struct msg_supervisor_reload m;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_supervisor_reload, &m)) {
        return;
    }
    ok.changes = calloc(CHANGES_MAX, sizeof *ok.changes);
    if (ok.changes == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for the changes");
        return;
    }
    if (engine_hooks(engine)->reload(engine, m.file, m.check, ok.changes, CHANGES_MAX,
                                     &ok.changes_n, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
    } else {
        request_answer(engine, rq, MSG_supervisor_reload_ok, &ok);
    }
    free(ok.changes);
}
