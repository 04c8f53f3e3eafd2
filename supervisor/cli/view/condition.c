#include "supervisor/cli/view/condition.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

#define RESULTS "results."

enum { DEEPEST = 16 }; /* checked conditions are at most 6 deep */

struct words {
    struct buf *out;
    const char *named; /* the reference of the test before; NULL = there is none */
};

struct test {
    const char *name, *words, *opposite;
};

static const struct test tests[] = {{"eq", "=", "!="},
                                    {"ne", "!=", "="},
                                    {"gt", ">", "<="},
                                    {"gte", ">=", "<"},
                                    {"lt", "<", ">="},
                                    {"lte", "<=", ">"},
                                    {"in", "in", "not in"},
                                    {"matches", "matches", "does not match"},
                                    {"schema", "fits", "does not fit"}};

static void put_value(const cJSON *value, struct buf *out)
{
    char *json = cJSON_IsString(value) ? NULL : cjson_print(value, false, NULL);

    buf_add_cstr(out, cJSON_IsString(value) ? value->valuestring : json != NULL ? json : "");
    cJSON_free(json);
}

static const struct test *test_of(const char *name)
{
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (strcmp(name, tests[i].name) == 0) {
            return &tests[i];
        }
    }
    return NULL;
}

/* The value that the plan of a recipe holds for an input; it is no test. */
static bool is_input_value(const cJSON *member)
{
    return strcmp(member->string, "value") == 0;
}

static bool is_exists(const cJSON *member)
{
    return strcmp(member->string, "exists") == 0;
}

/* A map of tests; any other value is compared. */
static bool has_tests(const cJSON *value)
{
    return cJSON_IsObject(value) && value->child != NULL &&
           (test_of(value->child->string) != NULL || is_exists(value->child) ||
            is_input_value(value->child));
}

static const char *short_of(const char *reference)
{
    const bool result = strncmp(reference, RESULTS, sizeof RESULTS - 1) == 0;

    return result ? reference + sizeof RESULTS - 1 : reference;
}

/* Where the reference was named just before, as in "a.n > 1 and < 9", it is left out. */
static void put_name(struct words *w, const char *reference)
{
    if (w->named == NULL || strcmp(w->named, reference) != 0) {
        buf_printf(w->out, "%s ", short_of(reference));
    }
    w->named = reference;
}

static void put_test(struct words *w, const char *reference, const cJSON *test, bool negated)
{
    const struct test *t = test_of(test->string);

    put_name(w, reference);
    if (is_exists(test)) {
        buf_add_cstr(w->out, cJSON_IsTrue(test) != negated ? "is there" : "is not there");
    } else {
        t = t != NULL ? t : test_of("eq");
        buf_printf(w->out, "%s ", negated ? t->opposite : t->words);
        put_value(test, w->out);
    }
}

/* `op`: how the parts are joined, & or |; in brackets when the text around is joined otherwise. */
static void begin(struct words *w, char op, char outer, bool several)
{
    buf_add_cstr(w->out, several && outer != 0 && outer != op ? "(" : "");
}

static void between(struct words *w, char op, bool first)
{
    buf_add_cstr(w->out, first ? "" : op == '&' ? " and " : " or ");
}

static void end(struct words *w, char op, char outer, bool several)
{
    buf_add_cstr(w->out, several && outer != 0 && outer != op ? ")" : "");
}

static void put_reference(struct words *w, const cJSON *member, bool negated, char outer)
{
    const char op = negated ? '|' : '&';
    const cJSON *t;
    int n = 0;

    if (!has_tests(member)) {
        put_test(w, member->string, member, negated);
        return;
    }
    cJSON_ArrayForEach(t, member)
    {
        n += !is_input_value(t);
    }
    begin(w, op, outer, n > 1);
    n = 0;
    cJSON_ArrayForEach(t, member)
    {
        if (!is_input_value(t)) {
            between(w, op, n++ == 0);
            put_test(w, member->string, t, negated);
        }
    }
    end(w, op, outer, n > 1);
}

static void put_map(struct words *w, const cJSON *when, bool negated, char outer, int depth);

static void put_list(struct words *w, const cJSON *list, bool all, bool negated, char outer,
                     int depth)
{
    const char op = all != negated ? '&' : '|';
    const bool several = cJSON_GetArraySize(list) > 1;
    const cJSON *c;

    begin(w, op, outer, several);
    cJSON_ArrayForEach(c, list)
    {
        between(w, op, c == list->child);
        put_map(w, c, negated, several ? op : outer, depth);
    }
    end(w, op, outer, several);
}

/* All members hold; negated: one does not. */
static void put_map(struct words *w, const cJSON *when, bool negated, char outer, int depth)
{
    const char op = negated ? '|' : '&';
    const bool several = cJSON_GetArraySize(when) > 1;
    const cJSON *m;

    if (depth > DEEPEST) {
        return;
    }
    begin(w, op, outer, several);
    cJSON_ArrayForEach(m, when)
    {
        const char around = several ? op : outer;
        between(w, op, m == when->child);
        if (strcmp(m->string, "all") == 0 || strcmp(m->string, "any") == 0) {
            put_list(w, m, strcmp(m->string, "all") == 0, negated, around, depth + 1);
        } else if (strcmp(m->string, "not") == 0) {
            put_map(w, m, !negated, around, depth + 1);
        } else {
            put_reference(w, m, negated, around);
        }
    }
    end(w, op, outer, several);
}

void condition_words(const cJSON *when, struct buf *out)
{
    struct words w = {.out = out};

    if (cJSON_IsObject(when)) {
        put_map(&w, when, false, 0, 0);
    }
}
