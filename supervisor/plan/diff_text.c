/* Differences between plans, as text and as a document. */
#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "supervisor/plan/diff.h"

enum { VALUE_SHOWN = 120, NAMES_SHOWN = 64, TASK_SHOWN = 100 };

/* ---- text ---- */

static void put_clean(struct buf *out, struct str text, size_t cap)
{
    const size_t n = utf8_cut(text.ptr, text.len, cap);
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        buf_add_byte(out, c < 0x20 || c == 0x7f ? ' ' : c);
    }
    if (n < text.len) {
        buf_add_cstr(out, "...");
    }
}

/* As JSON, which has no control characters. */
static void put_value(struct buf *out, struct doc v)
{
    struct buf json;
    if (v.ptr == NULL) {
        buf_add_cstr(out, "nothing");
        return;
    }
    buf_init(&json, 2 * LIMIT_CONTROL_BYTES);
    if (doc_to_json(v, false, &json, NULL) == BT_OK) {
        put_clean(out, buf_str(&json), VALUE_SHOWN);
    } else {
        out->bad = out->bad != BT_OK ? out->bad : json.bad;
        buf_add_cstr(out, "a value");
    }
    buf_done(&json);
}

static bool is_list(struct doc v)
{
    return v.ptr == NULL || (doc_head(v).kind == DOC_ARRAY && doc_head(v).n <= PLAN_DIFF_NAMES_MAX);
}

static bool holds(struct doc list, struct str name)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    const uint32_t n = list.ptr != NULL && doc_next(&c, &head) ? head.n : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (str_eq(doc_string(doc_skip(&c)), name)) {
            return true;
        }
    }
    return false;
}

/* " + name" for those of `list` that `other` does not have; at most NAMES_SHOWN. */
static void put_names(struct buf *out, const char *mark, struct doc list, struct doc other)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    const uint32_t n = list.ptr != NULL && doc_next(&c, &head) ? head.n : 0;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        if (name.ptr == NULL || holds(other, name)) {
            continue;
        }
        if (shown++ == NAMES_SHOWN) {
            buf_printf(out, " %s ...", mark);
            return;
        }
        buf_printf(out, " %s ", mark);
        put_clean(out, name, LIMIT_ID_BYTES + 16);
    }
}

static struct str member(struct doc step, const char *key)
{
    const struct str text = doc_string(doc_get(step, str_from(key)));
    return text.ptr == NULL ? (struct str){"", 0} : text;
}

/* "step report (files.render): render the report" */
static void put_step(struct buf *out, struct str id, struct doc step)
{
    const struct str agent = member(step, "agentId");
    const struct str skill = member(step, "skill");
    const struct str type = member(step, "type");
    buf_add_cstr(out, "step ");
    put_clean(out, id, LIMIT_ID_BYTES);
    if (agent.len + type.len > 0) {
        buf_add_cstr(out, " (");
        put_clean(out, agent.len > 0 ? agent : type, LIMIT_ID_BYTES);
        if (skill.len > 0) {
            buf_add_cstr(out, ".");
            put_clean(out, skill, LIMIT_ID_BYTES);
        }
        buf_add_cstr(out, ")");
    }
    if (member(step, "task").len > 0) {
        buf_add_cstr(out, ": ");
        put_clean(out, member(step, "task"), TASK_SHOWN);
    }
}

static void put_change(struct buf *out, const struct plan_difference *c)
{
    const bool names = str_is(c->field, "dependsOn") || str_is(c->field, "grants");
    if (c->step_id.len > 0) {
        buf_add_cstr(out, "step ");
        put_clean(out, c->step_id, LIMIT_ID_BYTES);
        buf_add_cstr(out, ": ");
    }
    put_clean(out, c->field, 200);
    buf_add_cstr(out, ":");
    if (names && is_list(c->before) && is_list(c->after)) {
        put_names(out, "+", c->after, c->before);
        put_names(out, "-", c->before, c->after);
        return;
    }
    buf_add_cstr(out, " ");
    put_value(out, c->before);
    buf_add_cstr(out, " -> ");
    put_value(out, c->after);
}

void plan_diff_text(const struct plan_diff *diff, struct buf *out)
{
    for (uint32_t i = 0; i < diff->n; i++) {
        const struct plan_difference *c = &diff->at[i];
        switch (c->kind) {
        case PLAN_CHANGE_ADDED:
            buf_add_cstr(out, "+ ");
            put_step(out, c->step_id, c->after);
            break;
        case PLAN_CHANGE_REMOVED:
            buf_add_cstr(out, "- ");
            put_step(out, c->step_id, c->before);
            break;
        case PLAN_CHANGE_CHANGED:
            buf_add_cstr(out, "~ ");
            put_change(out, c);
            break;
        }
        buf_add_cstr(out, "\n");
    }
    if (diff->left_out > 0) {
        buf_printf(out, "and %u more\n", diff->left_out);
    }
}

/* ---- document ---- */

void plan_diff_doc(const struct plan_diff *diff, struct buf *out)
{
    static const char *const kinds[] = {"added", "removed", "changed"};
    doc_put_array(out, diff->n);
    for (uint32_t i = 0; i < diff->n; i++) {
        const struct plan_difference *c = &diff->at[i];
        doc_put_map(out, 1u + (c->step_id.len > 0) + (c->field.len > 0) + (c->before.ptr != NULL) +
                             (c->after.ptr != NULL));
        doc_put_cstr(out, "change");
        doc_put_cstr(out, kinds[c->kind]);
        if (c->step_id.len > 0) {
            doc_put_cstr(out, "stepId");
            doc_put_str(out, c->step_id);
        }
        if (c->field.len > 0) {
            doc_put_cstr(out, "field");
            doc_put_str(out, c->field);
        }
        if (c->before.ptr != NULL) {
            doc_put_cstr(out, "before");
            doc_put_doc(out, c->before);
        }
        if (c->after.ptr != NULL) {
            doc_put_cstr(out, "after");
            doc_put_doc(out, c->after);
        }
    }
}
