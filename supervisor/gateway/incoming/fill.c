/* The plan that a request starts. */
#include "protocol/limits.h"
#include "supervisor/gateway/incoming/incoming_internal.h"
#include "supervisor/plan/recipe.h"

/* {name: value} of the pointers that lead to one. */
static void put_values(const struct incoming_hook *k, struct doc body, struct buf *out)
{
    const uint32_t inputs = doc_head(k->inputs).n;
    struct doc_cursor at = doc_cursor(k->inputs);
    struct doc_head head;
    struct buf pairs;
    uint32_t n = 0;

    buf_init(&pairs, out->max);
    (void)doc_next(&at, &head);
    for (uint32_t i = 0; i < inputs; i++) {
        const struct doc name = doc_skip(&at);
        const struct doc value = pointer_find(body, doc_string(doc_skip(&at)));
        if (value.ptr != NULL) {
            doc_put_doc(&pairs, name);
            doc_put_doc(&pairs, value);
            n++;
        }
    }
    doc_put_map(out, n);
    buf_add_str(out, buf_str(&pairs));
    out->bad = pairs.bad != BT_OK ? pairs.bad : out->bad;
    buf_done(&pairs);
}

enum bt_code incoming_fill(const struct incoming_hook *k, struct doc body, struct buf *out,
                           struct bt_error *err)
{
    const struct doc recipe = doc_from_buf(&k->recipe);
    enum bt_code code = BT_OK;
    struct buf values;

    if (!recipe_is(recipe)) {
        doc_put_doc(out, recipe);
        return buf_check(out, err);
    }
    buf_init(&values, LIMIT_CONTROL_BYTES);
    put_values(k, body, &values);
    code = buf_check(&values, err);
    if (code == BT_OK) {
        code = recipe_fill(recipe, doc_from_buf(&values), out, err);
    }
    buf_done(&values);
    return code;
}

bool incoming_is_recipe(struct doc d)
{
    return recipe_is(d);
}

enum bt_code incoming_fill_recipe(struct doc recipe, struct doc values, struct buf *out,
                                  struct bt_error *err)
{
    return recipe_fill(recipe, values, out, err);
}
