/* What is shown of hooks: STATE/hooks.json. Replaced as a whole, not flushed to the disk. */
#include <stdio.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/base/replace.h"
#include "supervisor/gateway/incoming/incoming_internal.h"
#include "supervisor/gateway/json.h"

enum { WRITE_MS = 500, FILE_MAX = 32 * 1024, PATH_BYTES = 4400 };

void incoming_note(struct incoming *in, struct incoming_hook *k, unsigned status, struct str plan)
{
    k->started += plan.len > 0;
    k->refused += plan.len == 0;
    k->last_wall = clock_wall_ms();
    k->last_status = status;
    if (plan.len > 0) {
        (void)snprintf(k->last_plan, sizeof k->last_plan, "%.*s", (int)plan.len, plan.ptr);
    }
    in->dirty = true;
}

static void put_hook(const struct incoming_hook *k, struct buf *out)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"started", k->started},
                   {"refused", k->refused},
                   {"lastMs", k->last_wall},
                   {"lastStatus", k->last_status}};

    json_open(out, '{');
    json_member(out, "name", str_from(k->name));
    json_member(out, "scheme", str_from(incoming_schemes[k->scheme]));
    json_member(out, "lastPlanId", str_from(k->last_plan));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        json_key(out, numbers[i].name);
        json_u64(out, numbers[i].value);
    }
    json_close(out, '}');
}

static enum bt_code write_file(const struct incoming *in, const char *path, struct bt_error *err)
{
    struct buf text;
    enum bt_code code;

    buf_init(&text, FILE_MAX);
    json_open(&text, '{');
    json_key(&text, "hooks");
    json_open(&text, '[');
    for (uint32_t i = 0; i < in->n; i++) {
        put_hook(&in->hooks[i], &text);
    }
    json_close(&text, ']');
    json_close(&text, '}');
    code = buf_check(&text, err);
    code = code == BT_OK ? file_replace(path, text.at, text.len, err) : code;
    buf_done(&text);
    return code;
}

void incoming_run(struct incoming *in, const char *state_dir, msec now)
{
    char path[PATH_BYTES];
    struct bt_error err;

    if (now < incoming_deadline(in)) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/hooks.json", state_dir);
    in->dirty = false;
    in->written = now;
    if (write_file(in, path, &err) != BT_OK) {
        log_warn("gateway.hooks", "%s", err.msg);
    }
}

msec incoming_deadline(const struct incoming *in)
{
    return in == NULL || !in->dirty ? MSEC_NEVER : in->written == 0 ? 0 : in->written + WRITE_MS;
}

void incoming_show_none(const char *state_dir)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/hooks.json", state_dir);
    (void)unlink(path);
}
