/*
 * Whole conversations with the daemon, kept as files beside this one: what is asked, and all that
 * comes of it: each answer, each request to an agent, each event, and what else is written into the
 * journal (plans and their ends, results, rows that are not published), to the last member. A file
 * has orders, in lines that begin with ">", and below each what followed. Ids are numbered in the
 * order in which they appear; plans of answers have numbers of their own. BATON_WRITE=1 writes what
 * follows anew: read the difference.
 *
 *     > join calc 1                 an agent with the skill do
 *     > join boss 2 'skills':[...]  another card
 *     > ask plan.get 'planId':'$1'  a request, "'" for '"', "$1" for a plan, "#2" for another id
 *     > done calc 'result':{...}    the oldest work of an agent is completed
 *     > answer calc a 'outcome':... its answer for a step ("-": for the oldest)
 *     > lose calc                   the connection of its oldest work ends
 *     > leave calc                  it sends no heartbeats and is not reached any more
 *     > wait 1000                   milliseconds
 *     > as submitter                requests come from a credential; "nobody": from the token
 *     > restart                     kill -9 and a new start; agents join again
 *     > set breaker_failures 1      before the first join
 */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "tests/support/house/house.h"

enum { IDS_MAX = 400, PLANS_MAX = 20, FILE_MAX = 4 * 1024 * 1024, SENT_MAX = 256 };

struct transcript {
    struct house *h;
    struct engine_options opt;
    struct buf out;
    struct buf raw;        /* of the order that is obeyed */
    char ids[IDS_MAX][33]; /* without dashes */
    uint32_t ids_n;
    char plans[PLANS_MAX][UUID_TEXT_LEN + 1]; /* that answers began with */
    uint32_t plans_n;
    uint32_t frames; /* published so far */
    const char *sent[SENT_MAX];
    uint32_t sent_n;
};

static const char *folder = TRANSCRIPTS;
static struct transcript *now; /* for the agents, which have no place for it */

/* ---- ids ---- */

static bool is_hex(char c)
{
    return isdigit((unsigned char)c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* How many bytes of an id begin here: a UUID, or 32 or 16 hexadecimal digits alone; 0 = none. */
static size_t id_at(const char *s)
{
    static const size_t dashes[] = {8, 13, 18, 23};
    size_t n = 0;
    size_t d = 0;

    while (is_hex(s[n]) || (s[n] == '-' && d < 4 && n == dashes[d])) {
        d += s[n] == '-';
        n++;
    }
    if (n == UUID_TEXT_LEN && d == 4) {
        return n;
    }
    return d == 0 && (n == 32 || n == 16) && !isalnum((unsigned char)s[n]) ? n : 0;
}

static uint32_t id_number(struct transcript *t, const char *s, size_t n)
{
    char id[33] = {0};
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (s[i] != '-') {
            id[len++] = (char)toupper((unsigned char)s[i]);
        }
    }
    for (uint32_t i = 0; i < t->ids_n; i++) {
        if (strcmp(t->ids[i], id) == 0) {
            return i + 1;
        }
    }
    assert_true(t->ids_n < IDS_MAX);
    (void)snprintf(t->ids[t->ids_n], sizeof t->ids[0], "%s", id);
    return ++t->ids_n;
}

/* The number of a plan that an answer has named; 0 = none. */
static uint32_t plan_number(const struct transcript *t, const char *s, size_t n)
{
    for (uint32_t i = 0; i < t->plans_n; i++) {
        if (n == UUID_TEXT_LEN && memcmp(t->plans[i], s, n) == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* What an order has brought, with numbers for its ids: the plan that it has made is known by now.
 */
static void number_ids(struct transcript *t)
{
    bool within = false; /* a word */

    for (const char *s = t->raw.len > 0 ? buf_cstr(&t->raw) : ""; *s != 0;) {
        const size_t n = within ? 0 : id_at(s);
        const uint32_t plan = n > 0 ? plan_number(t, s, n) : 0;
        if (n > 0) {
            buf_printf(&t->out, plan > 0 ? "$%u" : "#%u", plan > 0 ? plan : id_number(t, s, n));
            s += n;
            within = false;
        } else {
            within = isalnum((unsigned char)*s) != 0;
            buf_add_byte(&t->out, (uint8_t)*s++);
        }
    }
    buf_clear(&t->raw);
}

static void keep_plan(struct transcript *t, const char *answer)
{
    const char *id = house_get(t->h, answer, "planId");

    if (id != NULL && strlen(id) == UUID_TEXT_LEN && plan_number(t, id, UUID_TEXT_LEN) == 0) {
        assert_true(t->plans_n < PLANS_MAX);
        (void)snprintf(t->plans[t->plans_n++], sizeof t->plans[0], "%s", id);
    }
}

/* "$1" and "#1" as the plan and the id that they stand for. */
static const char *with_ids(struct transcript *t, const char *s)
{
    struct buf text;
    const char *ret;

    buf_init(&text, FILE_MAX);
    for (; *s != 0; s++) {
        const unsigned long n = isdigit((unsigned char)s[1]) ? strtoul(s + 1, NULL, 10) : 0;
        if (s[0] == '$' && n > 0 && n <= t->plans_n) {
            buf_add_cstr(&text, t->plans[n - 1]);
        } else if (s[0] == '#' && n > 0 && n <= t->ids_n && strlen(t->ids[n - 1]) == 32) {
            const char *id = t->ids[n - 1];
            buf_printf(&text, "%.8s-%.4s-%.4s-%.4s-%.12s", id, id + 8, id + 12, id + 16, id + 20);
        } else {
            buf_add_byte(&text, (uint8_t)*s);
            continue;
        }
        s += strspn(s + 1, "0123456789");
    }
    ret = house_text(t->h, "%s", text.len > 0 ? buf_cstr(&text) : "");
    buf_done(&text);
    return ret;
}

/* ---- what came ---- */

static void add_json(struct transcript *t, const char *indent, const cJSON *value)
{
    char *text = cJSON_PrintUnformatted(value);

    assert_non_null(text);
    buf_add_cstr(&t->raw, indent);
    if (value->string != NULL) {
        buf_printf(&t->raw, "%s: ", value->string);
    }
    buf_add_cstr(&t->raw, text);
    buf_add_byte(&t->raw, '\n');
    cJSON_free(text);
}

/* What differs from one run to another. */
static bool is_measured(const char *name)
{
    static const char *const names[] = {"commitUs", "rssBytes", "journalBytes",
                                        "turns",    "version",  "pid",
                                        "sqlite",   "nng",      "startedAt"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A line for each member, and for each element of a list of maps. */
static void add_body(struct transcript *t, const char *head, const char *json)
{
    cJSON *all = cJSON_Parse(json);
    const cJSON *member;
    const cJSON *one;

    if (all == NULL) {
        fail_msg("no JSON: %s", json);
    }
    buf_printf(&t->raw, "%s\n", head);
    cJSON_ArrayForEach(member, all)
    {
        if (strcmp(member->string, "v") == 0 || strcmp(member->string, "id") == 0 ||
            (is_measured(member->string) && !cJSON_IsArray(member))) {
            continue;
        }
        if (!cJSON_IsArray(member) || !cJSON_IsObject(member->child)) {
            add_json(t, "  ", member);
            continue;
        }
        buf_printf(&t->raw, "  %s:\n", member->string);
        cJSON_ArrayForEach(one, member)
        {
            add_json(t, "    ", one);
        }
    }
    cJSON_Delete(all);
}

/* The rig calls it whenever a request is open. Each is told once. */
static const char *on_request(struct house_agent *agent, const char *request)
{
    struct transcript *t = now;
    char head[LIMIT_ID_BYTES + 8];

    for (uint32_t i = 0; i < t->sent_n; i++) {
        if (strcmp(t->sent[i], request) == 0) {
            return NULL;
        }
    }
    assert_true(t->sent_n < SENT_MAX);
    t->sent[t->sent_n++] = request;
    (void)snprintf(head, sizeof head, "%s <", agent->id);
    add_body(t, head, request);
    return NULL;
}

/* Without those of the system, which have nothing to do with what was asked. */
static void add_events(struct transcript *t)
{
    static const char *const left_out[] = {"eventId", "timestamp", "planId", "sessionId", "digest"};
    struct bt_error err;
    struct buf json;

    for (; t->frames < fake_link_frames(t->h->link); t->frames++) {
        const struct fake_frame *f = fake_link_frame(t->h->link, t->frames);
        cJSON *event;
        if (strncmp(f->topic, "system/", 7) == 0) {
            continue;
        }
        buf_init(&json, 1024 * 1024);
        assert_int_equal(doc_to_json((struct doc){f->body.at, f->body.len}, false, &json, &err),
                         BT_OK);
        event = cJSON_Parse(buf_cstr(&json));
        assert_non_null(event);
        for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++) {
            cJSON_DeleteItemFromObjectCaseSensitive(event, left_out[i]);
        }
        buf_add_cstr(&t->raw, "@ ");
        buf_add_cstr(&t->raw, f->topic);
        add_json(t, " ", event);
        cJSON_Delete(event);
        buf_done(&json);
    }
}

/* ---- what is written ---- */

static const struct journal_ops *real(void)
{
    return now->h->real;
}

static void add_doc(struct transcript *t, const char *head, const void *bytes, size_t len)
{
    struct bt_error err;
    struct buf json;

    buf_init(&json, 1024 * 1024);
    assert_int_equal(doc_to_json((struct doc){bytes, len}, false, &json, &err), BT_OK);
    add_body(t, head, buf_cstr(&json));
    buf_done(&json);
}

/* The first byte of a key that the daemon makes is no letter. */
static enum bt_code plan_is_added(struct journal *j, const struct journal_plan *p, uint64_t *ret_ix,
                                  struct bt_error *err)
{
    const bool ours = p->client_key.len > 0 && p->client_key.ptr[0] == '\x1f';
    const struct str key =
        ours ? (struct str){p->client_key.ptr + 1, p->client_key.len - 1} : p->client_key;
    const enum bt_code code = real()->plan_add(j, p, ret_ix, err);

    add_doc(now,
            house_text(now->h,
                       "+ plan %s%.*s, created %llu, status %.*s, session %.*s, job %.*s, owner "
                       "%.*s, goal %.*s",
                       ours ? "of " : "", STR_ARG(key), (unsigned long long)p->created_wall,
                       STR_ARG(p->status), STR_ARG(p->session_id), STR_ARG(p->job),
                       STR_ARG(p->owner), STR_ARG(p->goal)),
            p->doc, p->doc_len);
    return code;
}

static enum bt_code status_is_set(struct journal *j, uint64_t ix, struct str status, msec ended,
                                  struct bt_error *err)
{
    buf_printf(&now->raw, "+ plan %llu is %.*s, ended %llu\n", (unsigned long long)ix,
               STR_ARG(status), (unsigned long long)ended);
    return real()->plan_status(j, ix, status, ended, err);
}

/* Public ones are published. */
static enum bt_code row_is_added(struct journal *j, uint64_t pos, const struct journal_row *row,
                                 struct bt_error *err)
{
    if (!row->is_public && row->plan_ix != 0) {
        add_doc(now,
                house_text(now->h, "+ %.*s of plan %llu, %u blobs", STR_ARG(row->type),
                           (unsigned long long)row->plan_ix, row->blobs_n),
                row->body, row->body_len);
    }
    return real()->append(j, pos, row, err);
}

static enum bt_code blob_is_added(struct journal *j, const void *bytes, size_t len,
                                  uint64_t *ret_id, struct bt_error *err)
{
    const enum bt_code code = real()->blob_add(j, bytes, len, ret_id, err);
    struct bt_error why;
    struct buf json;

    buf_init(&json, 1024 * 1024);
    if (code == BT_OK && doc_to_json((struct doc){bytes, len}, false, &json, &why) == BT_OK) {
        buf_printf(&now->raw, "+ blob %llu ", (unsigned long long)*ret_id);
        buf_add_str(&now->raw, buf_str(&json));
        buf_add_byte(&now->raw, '\n');
    }
    buf_done(&json);
    return code;
}

static void watch_journal(struct house *h)
{
    h->ops.blob_add = blob_is_added;
    h->ops.plan_add = plan_is_added;
    h->ops.plan_status = status_is_set;
    h->ops.append = row_is_added;
}

/* ---- orders ---- */

/* The next word of the line; the rest is behind it. */
static const char *word(struct transcript *t, const char **rest)
{
    const size_t n = strcspn(*rest, " ");
    const char *ret = house_text(t->h, "%.*s", (int)n, *rest);

    *rest += n + strspn(*rest + n, " ");
    return ret;
}

static void join(struct transcript *t, const char *rest)
{
    const char *id = word(t, &rest);
    const uint32_t capacity = (uint32_t)strtoul(word(t, &rest), NULL, 10);
    struct house_agent *a = *rest == 0 ? house_join(t->h, id, capacity)
                                       : house_join_as(t->h, id, capacity, with_ids(t, rest), "");
    a->tells = on_request;
}

static void ask(struct transcript *t, const char *rest)
{
    const char *type = word(t, &rest);
    const char *answer = house_ask(t->h, type, "%s", *rest != 0 ? with_ids(t, rest) : " ");

    if (answer == NULL) {
        buf_add_cstr(&t->raw, "= nothing\n");
    } else {
        keep_plan(t, answer);
        add_body(t, "=", answer);
    }
}

static struct house_agent *agent_of(struct transcript *t, const char *id)
{
    for (uint32_t i = t->h->agents_n; i > 0; i--) {
        if (strcmp(t->h->agents[i - 1].id, id) == 0) {
            return &t->h->agents[i - 1];
        }
    }
    fail_msg("there is no agent %s", id);
    return NULL;
}

static void leave(struct transcript *t, const char *id)
{
    struct house_agent *a = agent_of(t, id);

    a->silent = a->deaf = true;
}

static void set(struct transcript *t, const char *name, uint32_t value)
{
    assert_null(t->h);
    if (strcmp(name, "in_flight") == 0) {
        t->opt.in_flight = value;
    } else if (strcmp(name, "plans_max") == 0) {
        t->opt.plans_max = value;
    } else if (strcmp(name, "result_max") == 0) {
        t->opt.result_max = value;
    } else if (strcmp(name, "breaker_failures") == 0) {
        t->opt.breaker_failures = value;
        t->opt.breaker_cooldown_ms = t->opt.breaker_cooldown_max_ms = 5000;
    } else {
        fail_msg("no option: %s", name);
    }
}

static void lose(struct transcript *t, const char *agent)
{
    if (house_work(t->h, agent, NULL) == NULL) {
        buf_printf(&t->raw, "%s has no such work\n", agent);
    } else {
        house_hang_up(t->h, agent, true);
    }
}

static void answer(struct transcript *t, const char *agent, const char *step, const char *fields)
{
    if (house_work(t->h, agent, step) == NULL) {
        buf_printf(&t->raw, "%s has no such work\n", agent);
    } else {
        house_answer(t->h, agent, step, "%s", with_ids(t, fields));
    }
}

static void obey(struct transcript *t, const char *line)
{
    const char *rest = line;
    const char *order = word(t, &rest);

    if (strcmp(order, "join") == 0) {
        join(t, rest);
    } else if (strcmp(order, "ask") == 0) {
        ask(t, rest);
    } else if (strcmp(order, "done") == 0) {
        const char *agent = word(t, &rest);
        answer(t, agent, NULL, house_text(t->h, "'outcome':'completed',%s", rest));
    } else if (strcmp(order, "answer") == 0) {
        const char *agent = word(t, &rest);
        const char *step = word(t, &rest);
        answer(t, agent, strcmp(step, "-") == 0 ? NULL : step, rest);
    } else if (strcmp(order, "lose") == 0) {
        lose(t, rest);
    } else if (strcmp(order, "leave") == 0) {
        leave(t, rest);
    } else if (strcmp(order, "wait") == 0) {
        house_wait(t->h, strtoull(rest, NULL, 10));
    } else if (strcmp(order, "as") == 0) {
        (void)house_as(t->h, strcmp(rest, "nobody") == 0 ? NULL : rest);
    } else if (strcmp(order, "restart") == 0) {
        house_restart(t->h);
        t->frames = 0;
    } else {
        fail_msg("no order: %s", line);
    }
}

/* ---- files ---- */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, FILE_MAX + 1);

    assert_non_null(text);
    if (f == NULL) {
        fail_msg("%s cannot be opened", path);
        return text;
    }
    assert_true(fread(text, 1, FILE_MAX, f) < FILE_MAX);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void write_file(const char *path, const struct buf *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(text->at, 1, text->len, f), text->len);
    assert_int_equal(fclose(f), 0);
}

/* What was written down, against what came. */
static void compare(const char *path, const char *was, const char *is)
{
    for (uint32_t line = 1; *was != 0 || *is != 0; line++) {
        const size_t n = strcspn(was, "\n");
        const size_t m = strcspn(is, "\n");
        if (n != m || memcmp(was, is, n) != 0) {
            fail_msg("%s:%u:\nexpected: %.*s\ngot:      %.*s", path, line, (int)n, was, (int)m, is);
        }
        was += n + (was[n] != 0);
        is += m + (is[m] != 0);
    }
}

static void play(const char *path)
{
    struct transcript *t = calloc(1, sizeof *t);
    char *was = read_file(path);
    char *copy = strdup(was);
    char *at = copy;

    assert_non_null(t);
    assert_non_null(copy);
    now = t;
    t->opt = house_options();
    buf_init(&t->out, FILE_MAX);
    buf_init(&t->raw, FILE_MAX);
    for (char *line = strsep(&at, "\n"); line != NULL; line = strsep(&at, "\n")) {
        char name[40];
        unsigned value;
        if (line[0] != '>' && line[0] != '#') {
            continue;
        }
        buf_printf(&t->out, "%s%s\n", line[0] == '>' && t->out.len > 0 ? "\n" : "", line);
        if (line[0] == '#') {
            continue;
        }
        if (sscanf(line, "> set %39s %u", name, &value) == 2) {
            set(t, name, value);
            continue;
        }
        t->h = t->h != NULL ? t->h : house_open_with(&t->opt);
        watch_journal(t->h);
        obey(t, line + 2);
        add_events(t);
        number_ids(t);
    }
    house_close(t->h);
    if (getenv("BATON_WRITE") != NULL) {
        write_file(path, &t->out);
    } else {
        compare(path, was, buf_cstr(&t->out));
    }
    buf_done(&t->out);
    buf_done(&t->raw);
    free(copy);
    free(was);
    free(t);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void each_conversation_is_as_it_was_written_down(void **state)
{
    struct dirent *e;
    DIR *dir = opendir(folder);
    char *names[64];
    size_t n = 0;

    (void)state;
    assert_non_null(dir);
    while ((e = readdir(dir)) != NULL) {
        const size_t len = strlen(e->d_name);
        if (len > 4 && strcmp(e->d_name + len - 4, ".txt") == 0 &&
            strcmp(e->d_name, "CMakeLists.txt") != 0) {
            assert_true(n < sizeof names / sizeof names[0]);
            names[n++] = strdup(e->d_name);
        }
    }
    assert_int_equal(closedir(dir), 0);
    assert_true(n > 0);
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        play(path);
        free(names[i]);
    }
}

/* With a folder, its conversations. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_conversation_is_as_it_was_written_down)};

    folder = argc > 1 ? argv[1] : folder;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
