/* A list of a recipe, its values and another document: the recipe is described, checked, filled and
 * compared; what was checked with all its defaults can be filled. */
#include "house.h"

#include "supervisor/plan/diff.h"
#include "supervisor/plan/recipe.h"

enum { PROBLEMS_MAX = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(struct doc a, struct doc b, struct arena *arena)
{
    struct plan_diff diff;
    struct bt_error err;
    struct buf out;
    buf_init(&out, 1 << 24);
    if (plan_diff(a, b, arena, &diff, &err) == BT_OK) {
        plan_diff_text(&diff, &out);
        size_t lines = 0;
        for (size_t i = 0; i < out.len; i++) {
            require(out.at[i] >= 0x20 || out.at[i] == '\n');
            lines += out.at[i] == '\n';
        }
        require(lines == diff.n + (diff.left_out > 0));
        buf_clear(&out);
        plan_diff_doc(&diff, &out);
    }
    require(out.bad == BT_OK);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct registry *registry;
    static struct arena kept;
    struct problem at[PROBLEMS_MAX];
    struct problems problems = {.at = at, .cap = PROBLEMS_MAX};
    struct arena arena = {.chunks = NULL};
    struct recipe_about about;
    struct bt_error err;
    struct buf doc;
    struct buf filled;
    if (registry == NULL) {
        registry = house(&kept);
    }
    buf_init(&doc, json_doc_capacity(size));
    buf_init(&filled, 1 << 22);
    if (json_to_doc((struct str){(const char *)data, size}, NULL, &doc, &err) == BT_OK) {
        const struct doc recipe = doc_at(doc_from_buf(&doc), 0);
        const struct doc values = doc_at(doc_from_buf(&doc), 1);
        const struct doc other = doc_at(doc_from_buf(&doc), 2);
        if (recipe.ptr != NULL) {
            const enum bt_code told = recipe_describe(recipe, &arena, &about, &err);
            const enum bt_code code = recipe_check(recipe, registry, &problems, &err);
            require((code == BT_OK) == (problems.errors == 0));
            require(code != BT_OK || told == BT_OK);
            (void)recipe_fill(recipe, values, &filled, &err);
            compare(recipe, other, &arena);
            compare(recipe, recipe, &arena);
        }
    }
    buf_done(&doc);
    buf_done(&filled);
    arena_done(&arena);
    return 0;
}
