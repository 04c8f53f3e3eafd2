/* Each allocation of the rag agent fails in its turn: the answer is whole, or it says that another
 * attempt may do better, and nothing stays. The service that makes vectors has memory. */
#include <stdio.h>

#include "tests/support/no_memory.h"
#include "tests/unit/agents/rag_world.h"

static bt_skill_run run_of(const char *skill)
{
    for (size_t i = 0; i < rag_skill_count; i++) {
        if (strcmp(rag_skills[i].id, skill) == 0) {
            return rag_skills[i].run;
        }
    }
    fail_msg("there is no skill %s", skill);
    return NULL;
}

static void ask(const char *skill, const char *parameters)
{
    char json[1000];

    (void)snprintf(json, sizeof json, "{\"parameters\":%s}", parameters);
    no_memory_each(skill, json, run_of(skill), rag_used());
}

static void fill(void)
{
    rag_text("a.md", "one two three\n\nfour\n");
    rag_text("b/c.txt", "two apples\n");
    (void)rag_do("index", "{}");
}

static void a_question_in_words_is_answered_whole_or_later(void **state)
{
    (void)state;
    rag_use("");
    fill();
    ask("retrieve", "{\"query\":\"two\"}");
    ask("retrieve", "{\"query\":\"nothing like it\",\"limit\":1}");
    ask("index", "{}");
}

static void a_question_with_meaning_is_answered_whole_or_later(void **state)
{
    (void)state;
    rag_use(",'embeddings':{'baseUrl':'$/v1','model':'toy','allowPrivate':['127.0.0.1']}");
    service_at("/v1/embeddings", 200, "",
               "{\"data\":[{\"embedding\":[1,2]},{\"embedding\":[2,1]}]}");
    fill();
    assert_true(rag_count("SELECT count(*) FROM chunks WHERE vector IS NOT NULL") == 2);
    service_forget();
    service_at("/v1/embeddings", 200, "", "{\"data\":[{\"embedding\":[1,2]}]}");
    ask("retrieve", "{\"query\":\"two\"}");
    ask("index", "{}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_in_words_is_answered_whole_or_later),
        cmocka_unit_test(a_question_with_meaning_is_answered_whole_or_later),
    };
    return cmocka_run_group_tests(tests, rag_start, rag_stop);
}
