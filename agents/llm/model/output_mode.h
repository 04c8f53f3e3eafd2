/* What a server does not take, learnt from its refusals. Pure. */
#ifndef LLM_OUTPUT_MODE_H
#define LLM_OUTPUT_MODE_H

#include "agents/llm/model/dialect.h"
#include "protocol/base/str.h"

/* One endpoint and model. */
struct server_caps {
    enum llm_output_mode output_mode;
    unsigned quirks; /* enum dialect_quirk */
};

/*
 * A request with this ladder was refused with that sentence. True when the ladder has changed, so
 * that asking again makes sense: by name, what the sentence complains about. Each call that returns
 * true goes one way only, so a server cannot keep it going.
 */
bool output_mode_learn(struct server_caps *l, enum llm_dialect d, bool with_schema, long status,
                       struct str sentence);
#endif
