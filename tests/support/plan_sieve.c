/* Plans through plan_read, as fast as they come: who writes them by the thousand can see which get
 * past. usage: plan_sieve CARDS <PLANS       both one JSON object per line Prints one line per
 * plan: {"ok":true,"plan":{the canonical document}}, {"ok":false,"problems":[{"category","stepId",
 * "message"}]}, or {"ok":false,"error":"not JSON"}. What was let past is read back as after a
 * restart; exit code 3 when that gives another plan. */
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "protocol/wire/doc.h"
#include "protocol/wire/msg.h"
#include "supervisor/plan/read.h"
#include "supervisor/plan/reader_internal.h"

enum { PROBLEMS_MAX = 64, AGENTS_MAX = 64 };

static const struct registry_limits limits = {
    .agents = AGENTS_MAX, .instances = AGENTS_MAX, .lease_ms = 3000, .suspect_ms = 2000};

struct sieve {
    struct registry *registry;
    struct arena cards; /* the registry's */
    struct arena arena; /* of one plan */
    struct problem at[PROBLEMS_MAX];
};

static void die(const char *what, const struct bt_error *err)
{
    (void)fprintf(stderr, "plan_sieve: %s: %s\n", what, err == NULL ? "" : err->msg);
    exit(2);
}

static enum bt_code parse(const char *line, ssize_t len, struct buf *out, struct bt_error *err)
{
    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r')) {
        len--;
    }
    buf_clear(out);
    return json_to_doc((struct str){line, (size_t)len}, NULL, out, err);
}

static void add_card(struct sieve *s, struct doc doc)
{
    struct msg_card *card = arena_alloc(&s->cards, sizeof *card);
    struct bt_error err = {0};
    struct uuid id = {.b = {1}};
    uint32_t agent;

    if (card == NULL ||
        msg_read_doc(&s->cards, doc_copy(&s->cards, doc), MSG_card, card, &err) != BT_OK) {
        die("a card", &err);
    }
    agent = registry_agent_add(s->registry, card->agent_id, 1);
    if (agent == REGISTRY_NONE) {
        die("too many cards", NULL);
    }
    registry_agent_card(s->registry, agent, card);
    id.b[1] = (uint8_t)(agent + 1);
    if (registry_register(s->registry, agent, id, 2, 1) == REGISTRY_NONE) {
        die("an agent cannot be registered", NULL);
    }
}

static void read_cards(struct sieve *s, const char *path)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    struct buf doc;
    struct bt_error err = {0};

    if (f == NULL) {
        die(path, NULL);
    }
    buf_init(&doc, LIMIT_STEP_BYTES);
    while ((len = getline(&line, &room, f)) > 0) {
        if (parse(line, len, &doc, &err) != BT_OK) {
            die(path, &err);
        }
        add_card(s, doc_from_buf(&doc));
    }
    buf_done(&doc);
    free(line);
    (void)fclose(f);
}

static void print(cJSON *answer)
{
    char *text = cJSON_PrintUnformatted(answer);

    if (text == NULL || puts(text) == EOF) {
        die("an answer cannot be printed", NULL);
    }
    cJSON_free(text);
    cJSON_Delete(answer);
}

static cJSON *answer_new(bool ok)
{
    cJSON *answer = cJSON_CreateObject();

    if (answer == NULL || cJSON_AddBoolToObject(answer, "ok", ok) == NULL) {
        die("out of memory", NULL);
    }
    return answer;
}

static void print_problems(const struct problems *problems, const struct bt_error *err)
{
    cJSON *answer = answer_new(false);
    cJSON *list = cJSON_AddArrayToObject(answer, "problems");

    (void)cJSON_AddStringToObject(answer, "error", err->msg);
    for (uint32_t i = 0; i < problems->n; i++) {
        const struct problem *p = &problems->at[i];
        cJSON *item = p->warning ? NULL : cJSON_CreateObject();
        if (item != NULL) {
            (void)cJSON_AddStringToObject(item, "category", problem_category_name(p->category));
            (void)cJSON_AddStringToObject(item, "stepId", p->step == UINT32_MAX ? "" : p->step_id);
            (void)cJSON_AddStringToObject(item, "message", p->message);
            (void)cJSON_AddItemToArray(list, item);
        }
    }
    print(answer);
}

/* What a restart would make of it. */
static void read_back(struct sieve *s, const struct buf *normalised)
{
    struct plan_defaults defaults = plan_defaults_builtin();
    struct plan *again = NULL;
    struct bt_error err = {0};
    struct buf out;

    buf_init(&out, LIMIT_STEP_BYTES);
    if (plan_read_canonical(doc_from_buf(normalised), &defaults, s->registry, &s->arena, &again,
                            &err) != BT_OK ||
        plan_write(again, &out, &err) != BT_OK || out.len != normalised->len ||
        memcmp(out.at, normalised->at, out.len) != 0) {
        (void)fprintf(stderr, "plan_sieve: read back, it is another plan: %s\n", err.msg);
        exit(3);
    }
    buf_done(&out);
}

static void sift(struct sieve *s, struct doc doc)
{
    struct plan_defaults defaults = plan_defaults_builtin();
    struct problems problems = {.at = s->at, .cap = PROBLEMS_MAX};
    struct plan *plan = NULL;
    struct bt_error err = {0};
    struct buf normalised;
    struct buf json;

    buf_init(&normalised, LIMIT_STEP_BYTES);
    buf_init(&json, LIMIT_STEP_BYTES * 4);
    if (plan_read(doc, &defaults, s->registry, &s->arena, &plan, &problems, &normalised, &err) !=
        BT_OK) {
        print_problems(&problems, &err);
    } else if (doc_to_json(doc_from_buf(&normalised), false, &json, &err) != BT_OK) {
        die("a plan as JSON", &err);
    } else {
        read_back(s, &normalised);
        (void)printf("{\"ok\":true,\"plan\":%s}\n", buf_cstr(&json));
    }
    buf_done(&normalised);
    buf_done(&json);
}

int main(int argc, char **argv)
{
    struct sieve *s = calloc(1, sizeof *s);
    void *memory = malloc(registry_size(&limits));
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    struct buf doc;
    struct bt_error err = {0};

    if (s == NULL || memory == NULL || argc != 2) {
        die("usage: plan_sieve CARDS <PLANS", NULL);
    }
    s->registry = registry_init(memory, &limits);
    read_cards(s, argv[1]);
    buf_init(&doc, LIMIT_STEP_BYTES);
    while ((len = getline(&line, &room, stdin)) > 0) {
        if (parse(line, len, &doc, &err) == BT_OK) {
            sift(s, doc_from_buf(&doc));
        } else {
            cJSON *answer = answer_new(false);
            (void)cJSON_AddStringToObject(answer, "error", err.msg);
            print(answer);
        }
        arena_reset(&s->arena);
    }
    buf_done(&doc);
    free(line);
    arena_done(&s->arena);
    arena_done(&s->cards);
    free(s->registry);
    free(s);
    return 0;
}
