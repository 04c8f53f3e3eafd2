/* A prompt whose data are the members of the step's parameters. Pure except for the heap. */
#ifndef LLM_AGENT_JSON_PROMPT_H
#define LLM_AGENT_JSON_PROMPT_H

#include "agents/llm/prompt.h"

struct cJSON;

enum { JSON_PROMPT_TEXTS = 8 };

struct json_prompt {
    struct prompt p;
    char *texts[JSON_PROMPT_TEXTS]; /* the texts that parts borrow */
    uint32_t n;
    bool ok; /* false: out of memory */
};

void json_prompt_init(struct json_prompt *q);
void json_prompt_done(struct json_prompt *q);
/* Adds a frame with the value: a text as it is, anything else as JSON. A missing, null or empty
 * value is left out. Borrows the value. */
void json_prompt_data(struct json_prompt *q, const char *from, const struct cJSON *value);
/* Adds a frame with a text from cJSON_Print* or malloc, which it takes; NULL = out of memory. */
void json_prompt_text(struct json_prompt *q, const char *from, char *text);

/* Removes wall-clock times from a list of objects: a model does not need them, and a recording
 * would never match again. */
void json_prompt_drop_times(struct cJSON *list);
#endif
