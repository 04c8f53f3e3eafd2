/* Learns from a server's rejections what it does not accept. Pure. */
#ifndef LLM_OUTPUT_MODE_H
#define LLM_OUTPUT_MODE_H

#include "agents/llm/model/dialect.h"
#include "protocol/base/str.h"

/* What one endpoint and model accept. */
struct server_caps {
    enum llm_output_mode output_mode;
    unsigned quirks; /* enum dialect_quirk */
};

/*
 * The server rejected a request that was made with these caps. True when the error names a feature
 * that the caps can drop: they have changed and a retry makes sense. Every change goes in one
 * direction, so a server cannot cause endless retries.
 */
bool output_mode_learn(struct server_caps *l, enum llm_dialect d, bool with_schema, long status,
                       struct str sentence);
#endif
