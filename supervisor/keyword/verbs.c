#include "supervisor/keyword/verbs.h"

#include "protocol/wire/msg.h"
#include "supervisor/keyword/phrase.h"
#include "supervisor/keyword/words.h"

/* How a word is known: as the first of an example, or as another that a skill is called by. */
enum { KNOWN_NAME = 1, KNOWN_EXAMPLE = 2 };
enum { VERBS_MAX = 4096, EXAMPLES_MAX = 16, TAGS_MAX = 32 };

bool verbs_is_question(struct str skill_id)
{
    static const char *const questions[] = {"gate", "verify", "plan", "synthesize", "converse"};
    return phrase_is(skill_id, PHRASE_LIST(questions));
}

/* ---- what is known ---- */

static enum bt_code put(struct verbs *v, struct map *map, struct str word, uint32_t how)
{
    const uint32_t had = map_get(map, word);
    if (map->used >= VERBS_MAX && had == MAP_NONE) {
        return BT_OK;
    }
    const struct str kept = arena_str(v->arena, word);
    return kept.ptr == NULL ? BT_NOMEM : map_put(map, kept, had == MAP_NONE ? how : had | how);
}

/* The first word of a text. */
static enum bt_code learn(struct verbs *v, struct str text, uint32_t how)
{
    struct words words;
    struct word w;
    words_init(&words, text);
    if (!words_next(&words, &w)) {
        return BT_OK;
    }
    const enum bt_code code = put(v, &v->known, str_from(w.shown), how);
    return code == BT_OK ? put(v, &v->stems, (struct str){w.text, w.len}, how) : code;
}

static enum bt_code learn_skill(struct verbs *v, const struct msg_skill *skill)
{
    enum bt_code code = learn(v, skill->id, KNOWN_NAME);
    code = code == BT_OK ? learn(v, skill->name, KNOWN_NAME) : code;
    for (uint32_t i = 0; i < skill->tags_n && i < TAGS_MAX && code == BT_OK; i++) {
        code = learn(v, skill->tags[i], KNOWN_NAME);
    }
    for (uint32_t i = 0; i < skill->examples_n && i < EXAMPLES_MAX && code == BT_OK; i++) {
        code = learn(v, skill->examples[i], KNOWN_EXAMPLE);
    }
    return code;
}

enum bt_code verbs_init(struct verbs *v, const struct registry *registry, struct arena *arena,
                        struct bt_error *err)
{
    *v = (struct verbs){.arena = arena};
    const uint32_t n = registry == NULL ? 0 : registry_agents(registry);
    for (uint32_t a = 0; a < n; a++) {
        const struct agent_view agent = registry_agent_view(registry, a);
        const uint32_t skills = agent.enabled && agent.card != NULL ? agent.card->skills_n : 0;
        for (uint32_t s = 0; s < skills && v->known.used < VERBS_MAX; s++) {
            if (!verbs_is_question(agent.card->skills[s].id) &&
                learn_skill(v, &agent.card->skills[s]) != BT_OK) {
                return err_set(err, BT_NOMEM, "out of memory for the planner's index");
            }
        }
    }
    return BT_OK;
}

void verbs_done(struct verbs *v)
{
    map_done(&v->known);
    map_done(&v->stems);
}

/* ---- what begins with one ---- */

/* What work is done to. */
static bool is_object(struct str word)
{
    static const char *const words[] = {
        "the", "a",   "an",   "all",   "any", "each", "every", "this",  "that", "these", "those",
        "it",  "its", "them", "their", "my",  "our",  "your",  "which", "what", "how",   "both"};
    return phrase_is(word, PHRASE_LIST(words));
}

/* What has to be looked at apart from an object: "count installs", not "count per day". */
static bool is_between(struct str word)
{
    static const char *const words[] = {
        "of",   "in",   "into", "from", "per",  "by",    "for",  "to",     "with",   "on",
        "at",   "and",  "or",   "is",   "are",  "was",   "were", "as",     "than",   "but",
        "not",  "only", "also", "then", "like", "under", "over", "except", "plus",   "minus",
        "both", "even", "out",  "up",   "off",  "about", "it",   "either", "without"};
    return phrase_is(word, PHRASE_LIST(words)) || is_object(word);
}

static bool is_thing(struct str word)
{
    const char c = word.len > 0 ? word.ptr[0] : '\0';
    return c == '"' || c == '`' || c == '\'' || (c >= '0' && c <= '9') || token_is_path(word) ||
           token_is_url(word);
}

static bool is_plain(struct str word)
{
    for (size_t i = 0; i < word.len; i++) {
        const char c = word.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80)) {
            return false;
        }
    }
    return word.len >= 2;
}

static uint32_t how_known(const struct verbs *v, struct str token)
{
    struct words words;
    struct word w;
    words_init(&words, token);
    const uint32_t how = words_next(&words, &w) ? map_get(&v->known, str_from(w.shown)) : MAP_NONE;
    return how == MAP_NONE ? 0 : how;
}

bool verbs_begin(const struct verbs *v, struct str text)
{
    struct str word;
    struct str next = {NULL, 0};
    size_t at = 0;
    if (!phrase_word(text, &at, &word) || !is_plain(word) || is_between(word) ||
        phrase_gerund(word)) {
        return false;
    }
    const uint32_t how = how_known(v, word);
    if (!phrase_word(text, &at, &next)) {
        return (how & KNOWN_EXAMPLE) != 0;
    }
    /* "bake a cake" begins work, whoever can do it: a noun does not stand before an article. */
    if (is_object(next)) {
        return true;
    }
    return how != 0 && (is_thing(next) || ((how & KNOWN_EXAMPLE) != 0 && !is_between(next)));
}

bool verbs_know(const struct verbs *v, struct str word)
{
    struct words words;
    struct word w;
    words_init(&words, word);
    return words_next(&words, &w) && map_get(&v->stems, (struct str){w.text, w.len}) != MAP_NONE;
}
