/* The card of an A2A agent: where it is asked, in which version, and its skills. */
#include <stdio.h>

#include "agents/a2a/a2a.h"
#include "agents/sdk/settings/fields.h"
#include "protocol/base/glob.h"
#include "protocol/base/utf8.h"

enum { CARD_BYTES = 4 * 1024 * 1024, DESCRIPTION_MAX = 1000, WORDS_MAX = 16 };

static const char INPUT[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"message\":{\"type\":\"string\",\"minLength\":1,\"x-baton-fill\":\"clause\",\"description\":"
    "\"what the agent is asked; the task when missing\"},"
    "\"data\":{\"description\":\"a value that goes with the message\"},"
    "\"contextId\":{\"type\":\"string\",\"maxLength\":255,\"description\":\"continues a "
    "conversation\"},"
    "\"" A2A_ANSWER
    "\":{\"type\":\"string\",\"description\":\"what a person answered; leave it out\"}}}";

/* ---- fetching ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text);
    const size_t m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The URL of the card, or of the place whose well-known path has it; agents before 0.3 had another
 * name for it. */
static enum bt_code fetch(const struct a2a_agent *a, struct buf *json, struct bt_error *err)
{
    static const char *const paths[] = {"/.well-known/agent-card.json", "/.well-known/agent.json"};
    const char *url = a->settings->url;
    const size_t n = strlen(url) - (url[strlen(url) - 1] == '/' ? 1 : 0);
    char whole[WEB_URL_MAX];
    long status = 0;

    if (ends_with(url, ".json")) {
        const enum bt_code code = a2a_fetch(a, url, &status, json, err);
        return code != BT_OK || status == 200
                   ? code
                   : err_set(err, BT_NOT_FOUND, "%s: status %ld, no card of an agent", url, status);
    }
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        enum bt_code code;
        (void)snprintf(whole, sizeof whole, "%.*s%s", (int)n, url, paths[i]);
        code = a2a_fetch(a, whole, &status, json, err);
        if (code != BT_OK || status == 200) {
            return code;
        }
        if (status == 401 || status == 403) {
            return err_set(err, BT_UNAUTHORIZED, "%s: status %ld; set bearer or headers", whole,
                           status);
        }
    }
    return err_set(err, BT_NOT_FOUND, "%.*s has no card of an A2A agent (%s: status %ld)", (int)n,
                   url, paths[0], status);
}

/* ---- the interface ---- */

static struct str text_of(struct doc map, const char *member)
{
    return doc_string(doc_get(map, str_from(member)));
}

static bool begins(struct str text, const char *with)
{
    const size_t n = strlen(with);

    return text.len >= n && memcmp(text.ptr, with, n) == 0;
}

static bool is_modern(struct str version)
{
    return begins(version, "1.") || str_is(version, "1");
}

static bool is_legacy(struct str version)
{
    return begins(version, "0.3") || begins(version, "0.2");
}

/* The first interface of JSON-RPC that we know, 1.0 before 0.3. */
static struct str choose(struct a2a_agent *a, struct doc card)
{
    const struct doc list = doc_get(card, STR_LIT("supportedInterfaces"));
    const struct str own = text_of(card, "preferredTransport");
    struct str legacy = {NULL, 0};

    for (uint32_t i = 0; list.ptr != NULL && i < doc_head(list).n; i++) {
        const struct doc one = doc_at(list, i);
        const struct str version = text_of(one, "protocolVersion");
        if (!str_is(text_of(one, "protocolBinding"), "JSONRPC")) {
            continue;
        }
        if (is_modern(version)) {
            a->modern = true;
            return text_of(one, "url");
        }
        if (is_legacy(version) && legacy.ptr == NULL) {
            legacy = text_of(one, "url");
        }
    }
    if (legacy.ptr != NULL) {
        return legacy;
    }
    if (own.ptr == NULL || str_is(own, "JSONRPC")) {
        return text_of(card, "url");
    }
    const struct doc others = doc_get(card, STR_LIT("additionalInterfaces"));
    for (uint32_t i = 0; others.ptr != NULL && i < doc_head(others).n; i++) {
        if (str_is(text_of(doc_at(others, i), "transport"), "JSONRPC")) {
            return text_of(doc_at(others, i), "url");
        }
    }
    return (struct str){NULL, 0};
}

static enum bt_code read_interface(struct a2a_agent *a, struct doc card, struct bt_error *err)
{
    const struct str url = choose(a, card);
    const struct doc capabilities = doc_get(card, STR_LIT("capabilities"));
    const struct doc streaming =
        capabilities.ptr == NULL ? capabilities : doc_get(capabilities, STR_LIT("streaming"));
    char text[WEB_URL_MAX];
    enum bt_code code;

    if (url.len == 0 || url.len >= sizeof text) {
        return err_set(err, BT_INVALID,
                       "the card offers no interface of JSON-RPC in protocol 1.0 or 0.3");
    }
    (void)snprintf(text, sizeof text, "%.*s", STR_ARG(url));
    code = web_resolve(a->settings->url, text, a->endpoint, err);
    code = code == BT_OK ? web_check_url(&a->settings->policy, a->endpoint, err) : code;
    a->streaming =
        streaming.ptr != NULL && doc_head(streaming).kind == DOC_BOOL && doc_head(streaming).b;
    return code == BT_OK ? BT_OK : err_wrap(err, "the card's interface");
}

/* ---- skills ---- */

static const char *const *read_words(struct arena *a, struct doc list)
{
    const char **words = arena_alloc(a, (WORDS_MAX + 1) * sizeof *words);
    uint32_t n = 0;

    for (uint32_t i = 0; words != NULL && list.ptr != NULL && doc_head(list).kind == DOC_ARRAY &&
                         i < doc_head(list).n && n < WORDS_MAX;
         i++) {
        const struct str word = doc_string(doc_at(list, i));
        if (word.len > 0) {
            words[n] = arena_str(a, (struct str){word.ptr, utf8_cut(word.ptr, word.len, 200)}).ptr;
            n += words[n] != NULL ? 1 : 0;
        }
    }
    if (words != NULL) {
        words[n] = NULL;
    }
    return words;
}

static bool is_wanted(const struct a2a_settings *s, struct str id)
{
    for (size_t i = 0; s->skills != NULL && s->skills[i] != NULL; i++) {
        if (glob_fits(str_from(s->skills[i]), id)) {
            return true;
        }
    }
    return s->skills == NULL;
}

static enum bt_code add_skill(struct a2a_agent *a, struct bt_agent_init *init, struct doc skill,
                              struct bt_error *err)
{
    const struct str id = text_of(skill, "id");
    struct str about = text_of(skill, "description");
    const struct str name = text_of(skill, "name");
    struct bt_skill one;

    if (id.len == 0) {
        return err_set(err, BT_INVALID, "a skill of the card has no id");
    }
    if (!is_wanted(a->settings, id)) {
        return BT_OK;
    }
    if (a->n_skills == LIMIT_SKILLS) {
        return err_set(err, BT_LIMIT,
                       "the card has more than %d skills; choose some: skills: "
                       "[\"report*\"]",
                       LIMIT_SKILLS);
    }
    about = about.len > 0 ? about : name.len > 0 ? name : id;
    about.len = utf8_cut(about.ptr, about.len, DESCRIPTION_MAX);
    one = (struct bt_skill){.id = field_skill_id(&a->arena, id),
                            .name = name.len > 0 ? arena_str(&a->arena, name).ptr : NULL,
                            .description = arena_str(&a->arena, about).ptr,
                            .tags = read_words(&a->arena, doc_get(skill, STR_LIT("tags"))),
                            .examples = read_words(&a->arena, doc_get(skill, STR_LIT("examples"))),
                            .input_schema = INPUT,
                            .effects = field_effect(a->settings->effects, id, "unsafe"),
                            .max_ms = a->settings->timeout_ms,
                            .run = a2a_run};
    a->skills[a->n_skills] = (struct a2a_skill){.id = one.id,
                                                .remote = arena_str(&a->arena, id).ptr,
                                                .unsafe = strcmp(one.effects, "unsafe") == 0};
    if (one.id == NULL || one.description == NULL || a->skills[a->n_skills].remote == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the skills");
    }
    a->n_skills++;
    return bt_agent_add_skill(init, &one, err);
}

enum bt_code a2a_card_read(struct a2a_agent *a, struct bt_agent_init *init, struct bt_error *err)
{
    struct buf json;
    struct buf bytes;
    struct doc card;
    struct doc skills;
    enum bt_code code;

    buf_init(&json, CARD_BYTES);
    buf_init(&bytes, json_doc_capacity(CARD_BYTES));
    code = fetch(a, &json, err);
    if (code == BT_OK && json_to_doc(buf_str(&json), NULL, &bytes, err) != BT_OK) {
        code = err_wrap(err, "the card of the agent");
    }
    card = doc_from_buf(&bytes);
    code = code == BT_OK ? read_interface(a, card, err) : code;
    skills = code == BT_OK ? doc_get(card, STR_LIT("skills")) : (struct doc){NULL, 0};
    for (uint32_t i = 0; code == BT_OK && skills.ptr != NULL &&
                         doc_head(skills).kind == DOC_ARRAY && i < doc_head(skills).n;
         i++) {
        code = add_skill(a, init, doc_at(skills, i), err);
    }
    if (code == BT_OK && a->n_skills == 0) {
        code = err_set(err, BT_INVALID, "the card has no skill%s",
                       a->settings->skills != NULL ? " that fits skills" : "");
    }
    buf_done(&json);
    buf_done(&bytes);
    return code;
}
