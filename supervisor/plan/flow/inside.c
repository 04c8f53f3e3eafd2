#include "supervisor/plan/flow/inside.h"

#include <string.h>

#include "supervisor/plan/flow/child.h"

enum { DEPTH_MAX = 2 * CHILD_DEPTH_MAX }; /* more than there can be */

struct str plan_around_of(struct doc document)
{
    const struct doc errand = doc_get(document, STR_LIT("errand"));
    const struct doc made_for = errand.ptr != NULL ? errand : doc_get(document, STR_LIT("child"));

    return made_for.ptr != NULL ? doc_string(doc_get(made_for, STR_LIT("of")))
                                : (struct str){"", 0};
}

bool plan_is_inside(struct uuid plan_id, const struct inside *in)
{
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        struct doc document;
        struct str around;

        if (!in->document(in->self, plan_id, &document)) {
            return false;
        }
        around = plan_around_of(document);
        if (in->is_known(in->self, around)) {
            return true;
        }
        if (around.len != UUID_TEXT_LEN || !uuid_parse(around, &plan_id)) {
            return false;
        }
    }
    return false;
}
