#include "supervisor/keyword/rank_parts.h"

#include "protocol/wire/msg.h"
#include "supervisor/keyword/fill.h"
#include "supervisor/keyword/said.h"
#include "supervisor/keyword/verbs.h"

enum {
    WEIGHT_STRONG = 3,
    WEIGHT_EXAMPLES = 2,
    WEIGHT_PLAIN = 1,
    WEIGHT_NONE = 0 /* explains a word, and draws none */
};

struct indexer {
    struct rank *r;
    struct document *doc;
    struct posting at[3 * RANK_WORDS_MAX]; /* heads of examples and the schema come on top */
    uint32_t words;                        /* read so far */
    uint32_t property;                     /* being read, as a bit; 0 = none is */
    bool is_switch;                        /* its name is, and it is boolean */
    bool description;                      /* the skill's is being read */
};

static void add_word(struct indexer *x, const struct word *w, uint32_t weight, unsigned at)
{
    const uint32_t term = map_get(&x->r->by_word, (struct str){w->text, w->len});
    x->doc->len += weight;
    if (term == MAP_NONE) {
        return;
    }
    uint32_t i = 0;
    while (i < x->doc->n && x->at[i].term != term) {
        i++;
    }
    if (i == x->doc->n) {
        x->at[x->doc->n++] = (struct posting){.term = term};
    }
    x->r->terms[term].df += x->at[i].tf == 0 && weight > 0;
    x->at[i].tf += weight;
    x->at[i].at |= at;
    struct posting *p = &x->at[i];
    p->described = x->property == 0 ? (!p->card || p->described) && x->description : p->described;
    p->card = p->card || x->property == 0;
    p->properties |= x->property;
    p->switches |= x->is_switch ? x->property : 0;
}

/* "Runs a read-only query" is about running. */
static bool is_third_person(const struct word *w)
{
    const size_t n = strlen(w->shown);
    return n > 2 && w->shown[n - 1] == 's' && w->shown[n - 2] != 's';
}

/* A value in a card ("read /var/log/syslog") is an example of its kind. */
static void add_text(struct indexer *x, struct str text, uint32_t weight, unsigned at)
{
    struct said_reader reader;
    enum said_kind kind;
    struct word w;
    said_begin(&reader, text);
    for (bool first = true; x->words < RANK_WORDS_MAX && said_next(&reader, &kind, &w);
         first = false) {
        x->words++;
        if (kind == SAID_WORD) {
            const bool verb = at != AT_DESCRIPTION || first || is_third_person(&w);
            add_word(x, &w, weight, verb ? at : 0);
        } else if (kind == SAID_PATH || kind == SAID_URL) {
            struct words words;
            words_init(&words, kind == SAID_PATH ? STR_LIT("file") : STR_LIT("url"));
            if (words_next(&words, &w)) {
                add_word(x, &w, weight, 0);
            }
        }
    }
}

/* The first word of an example is what one calls the skill by; of the others nobody knows. */
static void add_example(struct indexer *x, struct str text)
{
    struct said said;
    if (x->words >= RANK_WORDS_MAX) {
        return;
    }
    said_read_first(text, &said);
    if (said.n > 0) {
        add_word(x, &said.at[0].word, WEIGHT_NONE, AT_EXAMPLE | (said.question ? AT_QUESTION : 0));
    }
    add_text(x, text, WEIGHT_EXAMPLES, 0);
}

/* What parameters are called. The words of their choices are those of the values (fill.h). */
static void add_schema(struct indexer *x, struct doc schema)
{
    struct doc_cursor c = doc_cursor(doc_get(schema, STR_LIT("properties")));
    struct doc_head map;
    const uint32_t n = doc_next(&c, &map) && map.kind == DOC_MAP ? map.n : 0;
    x->words = 0; /* counted apart: they come last */
    for (uint32_t i = 0; i < n && i < FILL_PROPERTIES_MAX && x->words < RANK_WORDS_MAX; i++) {
        struct doc_head key;
        (void)doc_next(&c, &key);
        const struct doc property = doc_skip(&c);
        x->property = UINT32_C(1) << i;
        x->is_switch = str_is(doc_string(doc_get(property, STR_LIT("type"))), "boolean");
        add_text(x, key.str, WEIGHT_NONE, 0);
        x->is_switch = false;
        add_text(x, doc_string(doc_get(property, STR_LIT("description"))), WEIGHT_NONE, 0);
    }
}

static enum bt_code index_skill(struct rank *r, struct str agent_id, const struct msg_card *card,
                                struct document *doc)
{
    const struct msg_skill *skill = &card->skills[doc->skill];
    struct indexer x = {.r = r, .doc = doc};
    add_text(&x, skill->id, WEIGHT_STRONG, AT_NAME);
    add_text(&x, skill->name, WEIGHT_STRONG, AT_NAME);
    for (uint32_t i = 0; i < skill->tags_n; i++) {
        add_text(&x, skill->tags[i], WEIGHT_STRONG, AT_NAME);
    }
    add_text(&x, agent_id, WEIGHT_PLAIN, 0);
    add_text(&x, card->name, WEIGHT_PLAIN, 0);
    for (uint32_t i = 0; i < skill->examples_n; i++) {
        add_example(&x, skill->examples[i]);
    }
    x.description = true;
    add_text(&x, skill->description, WEIGHT_PLAIN, AT_DESCRIPTION);
    x.description = false;
    add_schema(&x, skill->input_schema);
    if (doc->n > 0) {
        doc->postings = arena_alloc(r->arena, doc->n * sizeof doc->postings[0]);
        if (doc->postings == NULL) {
            return BT_NOMEM;
        }
        memcpy(doc->postings, x.at, doc->n * sizeof doc->postings[0]);
    }
    return BT_OK;
}

static uint32_t count_skills(const struct registry *registry)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < registry_agents(registry); a++) {
        const struct agent_view v = registry_agent_view(registry, a);
        n += v.enabled && v.card != NULL ? v.card->skills_n : 0;
    }
    return n < RANK_SKILLS_MAX ? n : RANK_SKILLS_MAX;
}

enum bt_code rank_index(struct rank *r, const struct registry *registry)
{
    const uint32_t most = count_skills(registry);
    uint64_t total = 0;
    r->docs = arena_alloc(r->arena, (most + 1) * sizeof r->docs[0]);
    if (r->docs == NULL) {
        return BT_NOMEM;
    }
    for (uint32_t a = 0; a < registry_agents(registry); a++) {
        const struct agent_view v = registry_agent_view(registry, a);
        for (uint32_t s = 0; v.enabled && v.card != NULL && s < v.card->skills_n; s++) {
            if (r->n_docs == most) {
                break;
            }
            if (verbs_is_question(v.card->skills[s].id)) {
                continue; /* the supervisor asks these itself: nothing in a goal is about them */
            }
            struct document *doc = &r->docs[r->n_docs++];
            *doc = (struct document){.agent = a,
                                     .skill = s,
                                     .live = v.instances > 0,
                                     .changes = !str_is(v.card->skills[s].effects, "none")};
            if (index_skill(r, v.id, v.card, doc) != BT_OK) {
                return BT_NOMEM;
            }
            total += doc->len;
        }
    }
    r->mean_len = r->n_docs > 0 ? (double)total / r->n_docs : 1;
    return BT_OK;
}
