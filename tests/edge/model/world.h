/* A mock server of models, and clients for it. */
#ifndef TEST_LLM_WORLD_H
#define TEST_LLM_WORLD_H

#include "tests/support/cmocka.h"

#include "agents/llm/model/client.h"

#define CANARY "sk-canary-4f1d/9c27a8e35b60"

/* One mock for all tests of the program. */
int world_start(void **state);
/* The same with TLS: the server is localhost, its certificate is world_dir()/cert.pem. */
int world_start_tls(void **state);
/* The directory of the mock. */
const char *world_dir(void);
int world_stop(void **state);

/* A client of one provider: script is the first part of the path (mock_llm.py), members is JSON to
 * add to the provider (",\"attempts\":1"), or "". */
struct llm_client *world_client(const char *api, const char *script, const char *members);
/* The same from complete settings; %d in them is the port. */
struct llm_client *world_client_of(const char *settings);

struct world_answer {
    enum bt_code code;
    struct bt_error err;
    struct llm_reply reply;
};

/* Sends "question" for text, or with_schema for {"answer": integer}, within deadline_ms. Searches
 * the error and the reply for the canary. */
void world_ask(struct llm_client *c, bool with_schema, unsigned deadline_ms,
               struct world_answer *ret);
void world_done(struct llm_client *c, struct world_answer *a);
int world_port(void);
/* The number of bytes in all files of world_dir() with this ending, and whether one of them
 * contains the canary. */
size_t world_files(const char *ending, bool *ret_canary);
#endif
