/* The plan of ptc-runner as a map. */
#include "protocol/compat/compat_internal.h"

static bool stays(const struct compat_event *task, struct str removed)
{
    return removed.len == 0 || !str_eq(compat_text(task, "id"), removed);
}

/* Returns the number of tasks; with `put` it also writes them. */
static uint32_t kept_tasks(struct bt_vocabulary *v, struct doc before, struct str removed, bool put)
{
    const struct doc tasks =
        before.ptr != NULL ? doc_get(before, STR_LIT("tasks")) : (struct doc){NULL, 0};
    struct compat_event task;
    struct doc_head head;
    struct doc_cursor at;
    uint32_t n = 0;
    uint32_t left;

    if (tasks.ptr == NULL) {
        return 0;
    }
    at = doc_cursor(tasks);
    left = doc_next(&at, &head) ? head.n : 0;
    while (compat_next_step(&at, &left, &task)) {
        if (stays(&task, removed)) {
            n++;
            if (put) {
                doc_put_doc(&v->list, task.body);
            }
        }
    }
    return n;
}

static uint32_t new_tasks(struct bt_vocabulary *v, const struct compat_event *ev, bool put)
{
    struct compat_event step;
    uint32_t left = 0;
    uint32_t n = 0;
    struct doc_cursor at = {NULL, NULL};

    if (ev != NULL) {
        at = compat_steps(ev, &left);
    }
    while (compat_next_step(&at, &left, &step)) {
        struct compat_map task = {0};
        n++;
        if (put) {
            compat_copy(&task, "id", &step, "stepId");
            compat_copy(&task, "agent", &step, "agentId");
            compat_copy(&task, "input", &step, "task");
            compat_put(&v->list, &task);
        }
    }
    return n;
}

struct doc compat_plan_map(struct bt_vocabulary *v, struct doc before, struct str removed,
                           const struct compat_event *ev)
{
    compat_reset_buf(v, &v->list);
    doc_put_map(&v->list, 1);
    doc_put_cstr(&v->list, "tasks");
    doc_put_array(&v->list, kept_tasks(v, before, removed, false) + new_tasks(v, ev, false));
    (void)kept_tasks(v, before, removed, true);
    (void)new_tasks(v, ev, true);
    return doc_from_buf(&v->list);
}
