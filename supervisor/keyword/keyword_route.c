#include "supervisor/keyword/keyword_parts.h"

#include <stdio.h>

#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/msg.h"
#include "supervisor/keyword/fill.h"

enum {
    HITS_MAX = 16,
    MATCHES_MAX = 6,
    WHY_MAX = 700,
    ID_STEM = 48,
    KNOWN_MAX = FILL_TAKEN_MAX + FILL_CHOSEN_MAX + 18, /* texts that explain words of a clause */
    KNOWN_BYTES = 512                                  /* of each: hostile goals are long */
};

static const struct msg_card *card_of(const struct drafter *d, const struct rank_hit *hit)
{
    return registry_agent_view(d->request->registry, hit->agent).card;
}

static const struct msg_skill *skill_of(const struct drafter *d, const struct rank_hit *hit)
{
    return &card_of(d, hit)->skills[hit->skill];
}

static void put_name(struct buf *why, const struct drafter *d, const struct rank_hit *hit)
{
    buf_printf(why, "%.*s/%.*s", STR_ARG(registry_agent_view(d->request->registry, hit->agent).id),
               STR_ARG(skill_of(d, hit)->id));
}

/* ---- a clause that can be done ---- */

/* "read 2.31, log 0.80; runner-up sql/query 1.20; files/grep needs \"pattern\"" */
static enum bt_code explain(struct drafter *d, uint32_t clause, const struct rank_hit *hits,
                            uint32_t n, uint32_t chosen, const struct buf *passed, struct str *ret)
{
    struct rank_match matches[MATCHES_MAX];
    struct buf why;
    const uint32_t m = rank_explain(d->rank, clause, &hits[chosen], matches, MATCHES_MAX);
    buf_init(&why, 4 * WHY_MAX);
    for (uint32_t i = 0; i < m; i++) {
        buf_printf(&why, "%s%.*s %.2f", i == 0 ? "" : ", ", STR_ARG(matches[i].word),
                   matches[i].weight);
    }
    if (chosen + 1 < n) {
        buf_add_cstr(&why, "; runner-up ");
        put_name(&why, d, &hits[chosen + 1]);
        buf_printf(&why, " %.2f", hits[chosen + 1].score);
    }
    buf_add_str(&why, buf_str(passed));
    return keyword_keep(d, &why, WHY_MAX, ret);
}

/* "count_by_day-2": told apart by the number, no dots (they would look like a path in a template).
 */
static struct str step_id(struct drafter *d, const struct msg_skill *skill)
{
    char text[LIMIT_ID_BYTES + 1];
    (void)snprintf(text, sizeof text, "%.*s-%u",
                   (int)(skill->id.len < ID_STEM ? skill->id.len : ID_STEM), skill->id.ptr,
                   d->result->n_routes + 1);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '.' ? '-' : *c;
    }
    return arena_str(d->arena, str_from(text));
}

/* "the summary" in a later clause may mean what a skill with that tag made. */
static enum bt_code keep_calls(struct drafter *d, uint32_t ix, const struct msg_skill *skill)
{
    struct buf calls;
    buf_init(&calls, 4 * KNOWN_BYTES);
    buf_printf(&calls, "%.*s %.*s", STR_ARG(skill->id), STR_ARG(skill->name));
    for (uint32_t i = 0; i < skill->tags_n && calls.len < KNOWN_BYTES; i++) {
        buf_printf(&calls, " %.*s", (int)utf8_cut(skill->tags[i].ptr, skill->tags[i].len, 64),
                   skill->tags[i].ptr);
    }
    return keyword_keep(d, &calls, KNOWN_BYTES, &d->calls[ix]);
}

static enum bt_code add_step(struct drafter *d, uint32_t ix, const struct rank_hit *hit,
                             struct str why, uint32_t n_params)
{
    const struct msg_skill *skill = skill_of(d, hit);
    struct planner_route *route = &d->result->routes[d->result->n_routes];
    *route = (struct planner_route){
        .step_id = step_id(d, skill),
        .agent_id = arena_str(d->arena, registry_agent_view(d->request->registry, hit->agent).id),
        .skill = arena_str(d->arena, skill->id),
        .score = hit->score,
        .why = why};
    if (n_params > 0) {
        d->params[ix] = doc_copy(d->arena, doc_from_buf(&d->filled));
    }
    if (route->step_id.ptr == NULL || route->agent_id.ptr == NULL || route->skill.ptr == NULL ||
        (n_params > 0 && d->params[ix].ptr == NULL)) {
        return keyword_nomem(d);
    }
    d->result->n_routes++;
    d->ids[ix] = route->step_id;
    return keep_calls(d, ix, skill);
}

/* ---- a clause that cannot ---- */

static enum bt_code add_unrouted(struct drafter *d, uint32_t ix, struct buf *why)
{
    struct planner_unrouted *u = &d->result->unrouted[d->result->n_unrouted++];
    u->unsaid = d->order.at[ix].unsaid != UNSAID_NOTHING;
    u->clause = arena_str(d->arena, d->order.at[ix].text);
    const enum bt_code code = keyword_keep(d, why, WHY_MAX, &u->why);
    return u->clause.ptr == NULL ? keyword_nomem(d) : code;
}

/* Words match, but not the one that says what to do. */
static void put_unknown(const struct drafter *d, uint32_t ix, struct buf *why)
{
    struct str word;
    if (rank_headed(d->rank, ix, &word)) {
        buf_printf(why, "; none of them is there to \"%.*s\"", STR_ARG(word));
    } else {
        buf_add_cstr(why, "; it does not say what is to be done");
    }
}

static enum bt_code nobody_can(struct drafter *d, uint32_t ix, const struct rank_hit *hits,
                               uint32_t n, const struct buf *passed)
{
    struct buf why;
    buf_init(&why, 4 * WHY_MAX);
    if (rank_skills(d->rank) == 0) {
        buf_add_cstr(&why, "no agent with skills is registered");
    } else if (n == 0) {
        buf_add_cstr(&why, "no skill of any agent has one of its words");
    } else {
        buf_add_cstr(&why, "the nearest: ");
    }
    for (uint32_t i = 0; i < n && i < 3; i++) {
        buf_add_cstr(&why, i == 0 ? "" : ", ");
        put_name(&why, d, &hits[i]);
        buf_printf(&why, " %.2f", hits[i].score);
    }
    if (n > 0 && passed->len == 0) {
        put_unknown(d, ix, &why);
    }
    buf_add_str(&why, buf_str(passed));
    return add_unrouted(d, ix, &why);
}

static enum bt_code words_cannot(struct drafter *d, uint32_t ix)
{
    const struct clause *c = &d->order.at[ix];
    struct buf why;
    buf_init(&why, 4 * WHY_MAX);
    buf_printf(&why, "\"%.*s\" %s", STR_ARG(c->unsaid_words), unsaid_text(c->unsaid));
    return add_unrouted(d, ix, &why);
}

/* ---- one clause ---- */

/* The steps that it follows, with those of clauses in between that nobody can do. */
static uint32_t find_previous(struct drafter *d, uint32_t ix, struct str ret[CLAUSES_MAX])
{
    uint64_t after = d->order.at[ix].after;
    uint32_t n = 0;
    for (uint32_t i = ix; i > 0; i--) {
        const uint64_t one = UINT64_C(1) << (i - 1);
        if ((after & one) != 0 && d->ids[i - 1].len == 0) {
            after = (after & ~one) | d->after[i - 1];
        }
    }
    for (uint32_t i = 0; i < ix; i++) {
        if ((after >> i & 1) != 0) {
            ret[n++] = d->ids[i];
        }
    }
    d->after[ix] = after;
    return n;
}

static void put_passed(struct buf *out, struct str what, const char *before, const char *behind)
{
    buf_printf(out, " %s \"%.*s\"%s", before, (int)utf8_cut(what.ptr, what.len, 64), what.ptr,
               behind);
}

/* What else the words of a clause may be about: the values that they give, and what went before. */
static uint32_t known_texts(const struct drafter *d, uint32_t ix, const struct fill_taken *taken,
                            struct str ret[KNOWN_MAX])
{
    static const char results[] = "result output answer outcome";
    uint32_t n = 0;
    for (uint32_t i = 0; i < taken->n; i++) {
        ret[n++] = taken->at[i];
    }
    for (uint32_t i = 0; i < taken->n_chosen; i++) {
        ret[n++] = taken->chosen[i];
    }
    if (taken->previous) {
        ret[n++] = str_from(results);
    }
    for (uint32_t i = 0; taken->previous && i < ix && n + 1 < KNOWN_MAX; i++) {
        if ((d->after[ix] >> i & 1) != 0) {
            ret[n++] = d->texts[i];
            ret[n++] = d->calls[i];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        ret[i].len = ret[i].len < KNOWN_BYTES ? ret[i].len : KNOWN_BYTES;
    }
    return n;
}

/* Whether the skill can do all that the clause says; *passed says why not, d->filled has the
 * parameters if it can. */
static bool can_do(struct drafter *d, uint32_t ix, const struct rank_hit *hit,
                   const struct fill *fill, struct buf *passed, uint32_t *ret_params)
{
    struct fill_taken taken;
    struct str known[KNOWN_MAX];
    struct str what;
    struct buf why;
    buf_init(&why, WHY_MAX);
    buf_clear(&d->filled);
    *ret_params = fill_parameters(fill, skill_of(d, hit)->input_schema, &d->filled, &taken, &what);
    if (what.ptr != NULL) {
        put_passed(&why, what, "needs", ", which the words do not give");
    } else if (fill_leaves_out(fill, &taken, &what)) {
        put_passed(&why, what, "leaves out", ": give it a part of its own");
    } else if (!taken.whole && rank_unknown(d->rank, ix, hit, taken.filled, known,
                                            known_texts(d, ix, &taken, known), &what)) {
        put_passed(&why, what, "does not know", "");
    }
    const bool can = why.len == 0;
    if (!can) {
        buf_add_cstr(passed, "; ");
        put_name(passed, d, hit);
        buf_add_str(passed, buf_str(&why));
    }
    buf_done(&why);
    return can;
}

/* The best skill that knows what to do and can do all of it. */
static enum bt_code route(struct drafter *d, uint32_t ix, const struct fill *fill)
{
    struct rank_hit hits[HITS_MAX];
    const uint32_t n = rank_clause(d->rank, ix, hits, HITS_MAX);
    struct buf passed; /* skills that are about it but cannot */
    struct str why;
    uint32_t params;
    bool called = false;
    enum bt_code code = BT_OK;
    buf_init(&passed, WHY_MAX);
    for (uint32_t i = 0; i < n; i++) {
        called = called || (hits[i].supported && !hits[i].described);
    }
    for (uint32_t i = 0; i < n; i++) {
        /* Where another was meant first, a verb alone means nobody else. */
        const bool second = passed.len > 0 && rank_is_bare(d->rank, ix);
        if (!hits[i].supported || second || (called && hits[i].described) ||
            !can_do(d, ix, &hits[i], fill, &passed, &params)) {
            continue;
        }
        code = buf_check(&d->filled, d->err);
        code = code == BT_OK ? explain(d, ix, hits, n, i, &passed, &why) : code;
        code = code == BT_OK ? add_step(d, ix, &hits[i], why, params) : code;
        buf_done(&passed);
        return code;
    }
    code = nobody_can(d, ix, hits, n, &passed);
    buf_done(&passed);
    return code;
}

enum bt_code keyword_route(struct drafter *d, uint32_t ix)
{
    struct str previous[CLAUSES_MAX];
    const uint32_t n = find_previous(d, ix, previous);
    const struct fill fill = {d->order.at[ix].text, previous, n, d->texts, ix};
    return d->order.at[ix].unsaid != UNSAID_NOTHING ? words_cannot(d, ix) : route(d, ix, &fill);
}
