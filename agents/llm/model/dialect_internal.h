/* Shared by dialect*.c. */
#ifndef LLM_DIALECT_INTERNAL_H
#define LLM_DIALECT_INTERNAL_H

#include <cjson/cJSON.h>

#include "agents/llm/model/dialect.h"

enum { DIALECT_ERROR_MAX = 2048 };

/* "" when it is missing or not a text. Valid as long as the document. */
struct str member_text(struct doc map, const char *name);
/* False when it is missing or not a plausible token count. */
bool member_tokens(struct doc map, const char *path, uint64_t *ret);
/* Copies a name for logs: printable, cut; an empty one changes nothing. */
void copy_name(char ret[LLM_NAME_MAX], struct str name);
void add_tool(struct dialect_answer *a, struct doc arguments);

void openai_read(struct dialect_answer *a, struct doc value, bool chunk);
void anthropic_read(struct dialect_answer *a, struct doc value, bool chunk);
void ollama_read(struct dialect_answer *a, struct doc value);

/* Each adds its members to the body; false when out of memory. */
bool openai_body(const struct dialect_request *ask, cJSON *body);
bool anthropic_body(const struct dialect_request *ask, cJSON *body);
bool ollama_body(const struct dialect_request *ask, cJSON *body);

/* Adds a new item (NULL: out of memory); frees it on failure. */
bool put_item(cJSON *to, const char *name, cJSON *item);
bool put_text(cJSON *to, const char *name, const char *text);
/* Adds the turns as {role, content}. with_system: the system text is the first of them. */
bool put_turns(const struct dialect_request *ask, cJSON *body, bool with_system);
/* The system text with the instructions of the output mode; NULL when out of memory. */
char *make_system(const struct dialect_request *ask);
#endif
