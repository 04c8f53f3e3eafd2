/* A prompt whose data are the members of the step's parameters. Pure but for the heap. */
#ifndef LLM_AGENT_QUESTION_H
#define LLM_AGENT_QUESTION_H

#include "agents/llm/prompt.h"

struct cJSON;

enum { QUESTION_TEXTS = 8 };

struct question {
    struct prompt p;
    char *texts[QUESTION_TEXTS]; /* what parts are borrowed from */
    uint32_t n;
    bool ok; /* false: out of memory */
};

void question_init(struct question *q);
void question_done(struct question *q);
/* A frame with the value: a text bare, anything else as JSON; what is not there, null or empty is
 * left out. Borrows the value. */
void question_data(struct question *q, const char *from, const struct cJSON *value);
/* The same with a text from cJSON_Print* or malloc, which it takes; NULL = out of memory. */
void question_text(struct question *q, const char *from, char *text);

/* Takes wall times out of a list of objects: they say nothing to a model, and a recording would
 * never be found again. */
void question_forget_times(struct cJSON *list);
#endif
