#include "supervisor/plan/flow/child.h"

#include <string.h>

#include "supervisor/plan/flow/condition_internal.h"

static const char *const kinds[] = {
    [CHILD_OF_NONE] = "",    [CHILD_OF_MAP] = "forEach", [CHILD_OF_LOOP] = "repeat",
    [CHILD_OF_SUB] = "plan", [CHILD_OF_UNDO] = "undo",   [CHILD_OF_CALLS] = "calls"};

static enum child_kind kind_of(struct doc child)
{
    const struct str name = doc_string(doc_get(child, STR_LIT("kind")));
    for (int k = CHILD_OF_MAP; k <= CHILD_OF_CALLS; k++) {
        if (str_is(name, kinds[k])) {
            return (enum child_kind)k;
        }
    }
    return CHILD_OF_NONE;
}

const char *child_kind_name(enum child_kind kind)
{
    return kinds[kind];
}

static uint64_t number(struct doc map, const char *name)
{
    const struct doc_head head = doc_head(doc_get(map, str_from(name)));
    return head.kind == DOC_UINT                ? head.u
           : head.kind == DOC_INT && head.i > 0 ? (uint64_t)head.i
                                                : 0;
}

bool child_step_read(struct doc child, struct child_step *ret)
{
    *ret = (struct child_step){.kind = child.ptr == NULL ? CHILD_OF_NONE : kind_of(child)};
    if (ret->kind == CHILD_OF_NONE) {
        return false;
    }
    const struct doc until = doc_get(child, STR_LIT("until"));
    ret->list = doc_get(child, STR_LIT("list"));
    ret->name = doc_string(doc_get(child, STR_LIT("as")));
    ret->max_items = (uint32_t)number(child, "maxItems");
    ret->goes_on = str_is(doc_string(doc_get(child, STR_LIT("onItemFailure"))), "continue");
    ret->is_while = until.ptr == NULL;
    ret->condition = ret->is_while ? doc_get(child, STR_LIT("while")) : until;
    ret->body = doc_get(child, STR_LIT("body"));
    ret->document = doc_get(child, STR_LIT("document"));
    ret->inputs = doc_get(child, STR_LIT("inputs"));
    return true;
}

struct loop_policy child_loop(struct doc child)
{
    if (kind_of(child) != CHILD_OF_LOOP) {
        return (struct loop_policy){.max = 0};
    }
    const bool accept = str_is(doc_string(doc_get(child, STR_LIT("onMax"))), "accept");
    return (struct loop_policy){.max = (uint32_t)number(child, "max"),
                                .accept = accept ? 1 : 0,
                                .delay_ms = number(child, "delayMs")};
}

void child_of_read(struct doc child, struct child_of *ret, struct doc *ret_items)
{
    *ret_items = (struct doc){NULL, 0};
    *ret = (struct child_of){.kind = child.ptr == NULL ? CHILD_OF_NONE : kind_of(child)};
    if (ret->kind == CHILD_OF_NONE) {
        return;
    }
    ret->of = doc_string(doc_get(child, STR_LIT("of")));
    ret->step = (uint32_t)number(child, "step");
    ret->attempt = (uint32_t)number(child, "attempt");
    ret->round = (uint32_t)number(child, "round");
    ret->depth = (uint32_t)number(child, "depth");
    ret->name = doc_string(doc_get(child, STR_LIT("as")));
    ret->previous = doc_get(child, STR_LIT("previous"));
    *ret_items = doc_get(child, STR_LIT("items"));
}

static void put_number(struct buf *out, const char *name, uint64_t value)
{
    doc_put_cstr(out, name);
    doc_put_u64(out, value);
}

static void put_text(struct buf *out, const char *name, struct str value)
{
    doc_put_cstr(out, name);
    doc_put_str(out, value.len > 0 ? value : (struct str){"", 0});
}

void child_of_write(const struct child_of *of, struct doc items, struct buf *out)
{
    doc_put_map(out, 7 + (of->previous.ptr != NULL ? 1u : 0) + (items.ptr != NULL ? 1u : 0));
    put_text(out, "kind", str_from(kinds[of->kind]));
    put_text(out, "of", of->of);
    put_number(out, "step", of->step);
    put_number(out, "attempt", of->attempt);
    put_number(out, "round", of->round);
    put_number(out, "depth", of->depth);
    put_text(out, "as", of->name);
    if (of->previous.ptr != NULL) {
        doc_put_cstr(out, "previous");
        doc_put_doc(out, of->previous);
    }
    if (items.ptr != NULL) {
        doc_put_cstr(out, "items");
        doc_put_doc(out, items);
    }
}

/* ---- the document of a child ---- */

static bool is_one_of(struct str key, const char *const *names)
{
    while (*names != NULL && !str_is(key, *names)) {
        names++;
    }
    return *names != NULL;
}

/* The members of the map but those named; returns how many. */
static uint32_t copy_but(struct doc map, const char *const *names, struct buf *out)
{
    struct members m = members_of(map);
    struct str key;
    struct doc value;
    uint32_t n = 0;
    while (member_next(&m, &key, &value)) {
        if (is_one_of(key, names)) {
            continue;
        }
        n++;
        if (out != NULL) {
            doc_put_str(out, key);
            doc_put_doc(out, value);
        }
    }
    return n;
}

static void put_policy(struct doc policy, const struct child_share *share, struct buf *out)
{
    static const char *const own[] = {"planTimeoutMs", "budget", NULL};
    const bool budget = share->tokens > 0 || share->micros > 0;
    doc_put_map(out, copy_but(policy, own, NULL) + (budget ? 2 : 1));
    (void)copy_but(policy, own, out);
    put_number(out, "planTimeoutMs", share->time_ms);
    if (budget) {
        doc_put_cstr(out, "budget");
        doc_put_map(out, 2);
        put_number(out, "tokens", share->tokens);
        put_number(out, "costMicros", share->micros);
    }
}

enum bt_code child_document(const struct child_step *step, const struct child_of *of,
                            struct doc items, struct str session_id,
                            const struct child_share *share, struct buf *out, struct bt_error *err)
{
    static const char *const own[] = {"child", "policy", "steps", "sessionId", NULL};
    doc_put_map(out, copy_but(step->body, own, NULL) + (session_id.len > 0 ? 4 : 3));
    (void)copy_but(step->body, own, out);
    if (session_id.len > 0) {
        put_text(out, "sessionId", session_id);
    }
    doc_put_cstr(out, "child");
    child_of_write(of, items, out);
    doc_put_cstr(out, "policy");
    put_policy(doc_get(step->body, STR_LIT("policy")), share, out);
    doc_put_cstr(out, "steps");
    doc_put_doc(out, doc_get(step->body, STR_LIT("steps")));
    return buf_check(out, err);
}

bool child_gives(const struct child_of *of, struct str word)
{
    if (of->kind == CHILD_OF_MAP) {
        return str_is(word, "item") || str_is(word, "index") ||
               (of->name.len > 0 && str_eq(word, of->name));
    }
    return of->kind == CHILD_OF_LOOP && (str_is(word, "iteration") || str_is(word, "previous"));
}
