/* A prompt whose data are the members of the step's parameters. Pure but for the heap. */
#ifndef LLM_AGENT_JSON_PROMPT_H
#define LLM_AGENT_JSON_PROMPT_H

#include "agents/llm/prompt.h"

struct cJSON;

enum { JSON_PROMPT_TEXTS = 8 };

struct json_prompt {
    struct prompt p;
    char *texts[JSON_PROMPT_TEXTS]; /* what parts are borrowed from */
    uint32_t n;
    bool ok; /* false: out of memory */
};

void json_prompt_init(struct json_prompt *q);
void json_prompt_done(struct json_prompt *q);
/* A frame with the value: a text bare, anything else as JSON; what is not there, null or empty is
 * left out. Borrows the value. */
void json_prompt_data(struct json_prompt *q, const char *from, const struct cJSON *value);
/* The same with a text from cJSON_Print* or malloc, which it takes; NULL = out of memory. */
void json_prompt_text(struct json_prompt *q, const char *from, char *text);

/* Takes wall times out of a list of objects: they say nothing to a model, and a recording would
 * never be found again. */
void json_prompt_drop_times(struct cJSON *list);
#endif
