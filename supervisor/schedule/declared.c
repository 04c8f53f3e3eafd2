/* Schedules that the configuration declares: put, replaced and deleted as it says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "supervisor/engine/access.h"
#include "supervisor/schedule/schedule_internal.h"

enum { AGAIN_MS = 1000, REFUSED_MAX = 1024 };

struct declared {
    const char *name;
    const char *json;
    bool over;     /* it is put, or cannot be */
    char *refused; /* why it cannot; NULL = it can, or nobody knows yet */
};

/* No id of a credential has parentheses. */
bool schedule_is_declared(const struct schedule *p)
{
    return strcmp(p->owner, SCHEDULE_DECLARED) == 0;
}

void declared_done(struct schedules *s)
{
    for (uint32_t i = 0; i < s->declared_n; i++) {
        free(s->declared[i].refused);
    }
    free(s->declared);
    s->declared = NULL;
    s->declared_n = 0;
}

uint32_t schedules_refused(const struct schedules *s, struct msg_schedule_refused *ret,
                           uint32_t max)
{
    uint32_t n = 0;

    if (!access_sees(engine_who(s->engine), STR_LIT(SCHEDULE_DECLARED))) {
        return 0;
    }
    for (uint32_t i = 0; i < s->declared_n && n < max; i++) {
        const struct declared *d = &s->declared[i];
        if (d->refused != NULL) {
            ret[n++] = (struct msg_schedule_refused){
                .name = str_from(d->name),
                .error = {d->refused, utf8_cut(d->refused, strlen(d->refused), REFUSED_MAX - 1)}};
        }
    }
    return n;
}

enum bt_code schedules_declare(struct schedules *s, const struct schedule_declared *list,
                               uint32_t n, struct bt_error *err)
{
    struct declared *d = calloc(n + 1, sizeof *d);

    if (d == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for schedules");
    }
    for (uint32_t i = 0; i < n; i++) {
        d[i] = (struct declared){.name = list[i].name, .json = list[i].json};
    }
    declared_done(s);
    s->declared = d;
    s->declared_n = n;
    s->declared_at = 0;
    return BT_OK;
}

/* ---- what is declared no more ---- */

static bool is_listed(const struct schedules *s, const char *name)
{
    for (uint32_t i = 0; i < s->declared_n; i++) {
        if (strcmp(s->declared[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void delete_others(struct schedules *s)
{
    struct bt_error err;

    for (uint32_t i = 0; i < s->n && !engine_has_failed(s->engine); i++) {
        struct schedule *p = s->at[i];

        if (p == NULL || !schedule_is_declared(p) || is_listed(s, p->name)) {
            continue;
        }
        log_info("schedule.removed", "schedule=%s the configuration declares it no more", p->name);
        s->declaring = true;
        if (schedules_delete(s, p, &err) != BT_OK) {
            engine_fail(s->engine, &err);
        }
        s->declaring = false;
    }
}

/* ---- what is declared ---- */

static enum bt_code put(struct schedules *s, const struct declared *d, struct submission *made,
                        struct msg_schedule_put_ok *ret, struct bt_error *err)
{
    struct msg_schedule_put m;
    struct buf body;
    enum bt_code code;

    buf_init(&body, json_doc_capacity(strlen(d->json)));
    code = json_to_doc(str_from(d->json), NULL, &body, err);
    if (code == BT_OK) {
        code = msg_read_doc(&made->arena, doc_from_buf(&body), MSG_schedule_put, &m, err);
    }
    code = code == BT_OK ? schedules_put(s, &m, made, ret, &made->arena, err) : code;
    buf_done(&body);
    return code;
}

/* As the sender that the operator is. A schedule that lacks agents which may still come waits. */
static void put_one(struct schedules *s, struct declared *d)
{
    const struct identity *before = engine_who(s->engine);
    struct msg_schedule_put_ok ok = {.existing = false};
    struct submission made;
    struct bt_error err;
    enum bt_code code = submission_init(&made, &err);

    engine_act_for(s->engine, identity_local());
    s->declaring = true;
    code = code == BT_OK ? put(s, d, &made, &ok, &err) : code;
    s->declaring = false;
    engine_act_for(s->engine, before);
    d->over = code != BT_NOMEM && (code == BT_OK || !submission_waits_for_agents(s->engine, &made));
    if (code == BT_OK && !ok.existing) {
        log_info("schedule.declared", "schedule=%s %s", d->name, ok.replaced ? "replaced" : "new");
    } else if (code != BT_OK && d->over) {
        const struct str first =
            submission_problems(&made) > 0 ? made.problem_views[0].message : (struct str){"", 0};
        const bool said = memmem(err.msg, strlen(err.msg), first.ptr, first.len) != NULL;
        char why[REFUSED_MAX];
        (void)snprintf(why, sizeof why, "%s%s%.*s", err.msg, said ? "" : ": ",
                       said ? 0 : (int)first.len, first.ptr);
        d->refused = strdup(why); /* without memory the log has it alone */
        log_err("schedule.refused", "schedule=%s %s; it is not put", d->name, why);
    }
    submission_done(&made);
}

void declared_cycle(struct schedules *s)
{
    const msec now = engine_wall(s->engine);
    bool waits = false;

    if (s->declared_at > now) {
        return;
    }
    delete_others(s);
    for (uint32_t i = 0; i < s->declared_n && !engine_has_failed(s->engine); i++) {
        struct declared *d = &s->declared[i];
        if (!d->over) {
            put_one(s, d);
        }
        waits = waits || !d->over;
    }
    s->declared_at = waits ? now + AGAIN_MS : MSEC_NEVER;
}
