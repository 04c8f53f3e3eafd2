/*
 * The plan of a goal. Each piece is one step, or several where "and" or a comma joins things that
 * agents can do on their own. A skill gets a clause when it is called by the clause's verb,
 * explains enough of its words (confidence_of), and has parameters for its values. A piece that no
 * skill gets refuses the goal.
 */
#include <libstemmer.h>
#include <stdarg.h>
#include <stdio.h>

#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/msg.h"
#include "supervisor/keyword/keyword_internal.h"

enum { CANDIDATES_MAX = 16, NEAREST = 3, CLAUSE_SHOWN = 100 };
enum {
    TRIES_MAX = 256, /* clauses looked at for one goal: "and" may join many */
    TEXT_MAX = 700,  /* bytes of a refusal, or of why a step has its agent */
    WORD_SHOWN = 48, /* bytes of a word or a skill's id */
    ABOUT_SHOWN = 60 /* of a skill's description */
};

/* For "%.*s" of texts from outside. */
#define CUT(s, max) (int)utf8_cut((s).ptr, (s).len, max), (s).ptr
#define NAME_FMT "%.*s.%.*s"
#define NAME_ARG(e) STR_ARG((e)->agent_id), STR_ARG((e)->skill->id)

struct step {
    struct span tokens;
    const struct entry *entry;
    struct planner_route route;
    struct doc parameters;
    bool fed; /* its parameters are all that it reads, and hold the result before */
};

/* How well a skill fits a clause: see keyword_internal.h. */
struct confidence {
    unsigned percent;
    uint32_t others;  /* explained words besides the verb */
    uint32_t unknown; /* the first word that is not explained */
};

struct drafter {
    const struct planner_request *request;
    struct planner_result *result;
    struct goal goal;
    struct index index;
    struct fill fill;
    struct step steps[STEPS_MAX];
    uint32_t n_steps;
    uint32_t tries;
    uint32_t verb; /* of the clause that is looked at */
    struct confidence confidence;
    char reason[320]; /* why no skill got the clause that was looked at last; never cut */
};

/* The text in the arena, and the end of the buffer. */
static struct str keep_buf(struct drafter *d, struct buf *text)
{
    const struct str all = str_from(buf_cstr(text));
    const struct str kept =
        goal_keep(&d->goal, (struct str){all.ptr, utf8_cut(all.ptr, all.len, TEXT_MAX)});
    buf_done(text);
    return kept;
}

/* Notes why, and is false. */
static BT_PRINTF(2, 3) bool because(struct drafter *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(d->reason, sizeof d->reason, fmt, args);
    va_end(args);
    return false;
}

/* ---- confidence ---- */

/* "the report": a word of the goal before it, or what the skill of the step before is called. */
static bool names_result(const struct drafter *d, uint32_t i)
{
    const struct token *t = &d->goal.tokens[i];
    const bool has = d->n_steps > 0 && (d->fill.takes_previous || d->fill.reads_task);
    const struct posting *p = has ? entry_posting(d->steps[d->n_steps - 1].entry, t->term) : NULL;
    bool named =
        (p != NULL && p->called) || word_in(t->text, "result results output answer outcome");
    for (uint32_t k = 0; k < d->fill.span.from && !named; k++) {
        named = d->goal.tokens[k].term == t->term;
    }
    return has && named;
}

static bool is_explained(const struct drafter *d, uint32_t i, const struct entry *e)
{
    const struct token *t = &d->goal.tokens[i];
    const struct posting *p = entry_posting(e, t->term);
    return t->taken == d->fill.attempt || (p != NULL && (p->own || d->fill.reads_task)) ||
           names_result(d, i);
}

/* "Get rid of", "shut down": a particle after the verb counts like it. */
static struct confidence confidence_of(const struct drafter *d, const struct entry *e)
{
    const struct token *tokens = d->goal.tokens;
    const uint32_t to = d->fill.span.to;
    struct confidence c = {.unknown = to};
    unsigned known = 0;
    unsigned all = 0;
    for (uint32_t i = d->verb; i < to; i++) {
        const bool particle =
            i == d->verb + 1 && word_in(tokens[i].text, "rid off down away up out over back");
        unsigned weight = !tokens[i].content ? 0 : i == d->verb || particle ? 4 : 2;
        if (weight > 0 && is_explained(d, i, e)) {
            known += weight;
            c.others += i != d->verb;
        } else if (weight > 0) {
            const bool modifies = weight == 2 && d->fill.reads_task && i + 1 < to &&
                                  tokens[i + 1].content && !tokens[i].pause &&
                                  tokens[i - 1].kind != TOKEN_AND && is_explained(d, i + 1, e);
            weight = modifies ? 1 : weight;
            c.unknown = c.unknown == to ? i : c.unknown;
        }
        all += weight;
    }
    c.percent = all == 0 ? 100 : known * 100 / all;
    return c;
}

/* ---- one clause ---- */

/* Whether the skill may do the clause; d->fill has its parameters then. */
static bool can_do(struct drafter *d, const struct entry *e)
{
    const struct fill *f = &d->fill;
    const bool asks = goal_asks(&d->goal, f->span);
    const struct str effects = e->skill->effects;
    fill_parameters(&d->fill, e->skill->input_schema);
    const struct confidence c = d->confidence = confidence_of(d, e);
    const unsigned needed = f->reads_task ? CONFIDENCE_TASK : CONFIDENCE_PARAMETERS;
    if (c.percent < needed) {
        return because(d, NAME_FMT " does not explain \"%.*s\" (confidence %u, needed %u)",
                       NAME_ARG(e), CUT(d->goal.tokens[c.unknown].text, WORD_SHOWN), c.percent,
                       needed);
    }
    if (f->missing.ptr != NULL) {
        return because(d, NAME_FMT " needs \"%.*s\"", NAME_ARG(e), CUT(f->missing, WORD_SHOWN));
    }
    if (f->left != NULL) {
        return because(d, NAME_FMT " has no parameter for \"%.*s\"", NAME_ARG(e),
                       CUT(f->left->text, WORD_SHOWN));
    }
    if (asks && effects.len > 0 && !str_is(effects, "none")) {
        return because(d, "it is a question, and " NAME_FMT " may change something", NAME_ARG(e));
    }
    /* Never on the verb alone; but "what time is it" asks with one noun. */
    if (c.others == 0 && f->n == 0 && (f->reads_task || !asks)) {
        return because(d, "only \"%.*s\" points to " NAME_FMT,
                       CUT(d->goal.tokens[d->verb].text, WORD_SHOWN), NAME_ARG(e));
    }
    return true;
}

/* "read 2.31, log 0.80, confidence 100, runner-up sql.query 1.20"; `next`: NULL for none. */
static struct str explain(struct drafter *d, const struct entry *e, const struct hit *next)
{
    const struct goal *g = &d->goal;
    const struct span s = d->fill.span;
    struct buf why;
    buf_init(&why, 4 * LIMIT_TASK_BYTES);
    for (uint32_t i = s.from; i < s.to && why.len < TEXT_MAX / 2; i++) {
        const double weight =
            index_weight(&d->index, g, e, g->tokens[i].term, g->tokens[d->verb].term);
        if (weight > 0) {
            buf_printf(&why, "%.*s %.2f, ", CUT(g->tokens[i].text, WORD_SHOWN), weight);
        }
    }
    buf_printf(&why, "confidence %u", d->confidence.percent);
    if (next != NULL) {
        buf_printf(&why, ", runner-up " NAME_FMT " %.2f", NAME_ARG(next->entry), next->score);
    }
    return keep_buf(d, &why);
}

static void add_step(struct drafter *d, const struct hit *hit, const struct hit *next)
{
    const struct entry *e = hit->entry;
    struct step *step = &d->steps[d->n_steps];
    struct buf text;
    buf_init(&text, LIMIT_CONTROL_BYTES);
    buf_printf(&text, "%.*s-%u", CUT(e->skill->id, WORD_SHOWN), ++d->n_steps);
    for (size_t i = 0; i < text.len; i++) {
        text.at[i] = text.at[i] == '.' ? '-' : text.at[i]; /* no path in a template */
    }
    *step = (struct step){
        .tokens = d->fill.span, .entry = e, .fed = d->fill.takes_previous && !d->fill.reads_task};
    step->route = (struct planner_route){.step_id = goal_keep(&d->goal, buf_str(&text)),
                                         .agent_id = goal_keep(&d->goal, e->agent_id),
                                         .skill = goal_keep(&d->goal, e->skill->id),
                                         .score = hit->score,
                                         .why = explain(d, e, next)};
    buf_clear(&text);
    doc_put_map(&text, d->fill.n);
    buf_add_str(&text, buf_str(&d->fill.members));
    step->parameters = doc_copy(d->goal.arena, doc_from_buf(&text));
    if (text.bad != BT_OK || d->fill.members.bad != BT_OK || step->parameters.ptr == NULL) {
        (void)goal_nomem(&d->goal);
    }
    buf_done(&text);
}

/* Adds a step for the clause; else false, and d->reason is what its best skill lacks. */
static bool route(struct drafter *d, struct span s)
{
    struct hit hits[CANDIDATES_MAX];
    char best[sizeof d->reason];
    const struct token *tokens = d->goal.tokens;
    for (d->verb = s.from; d->verb < s.to && !tokens[d->verb].content; d->verb++) {
        if (tokens[d->verb].kind == TOKEN_EXPRESSION) {
            break; /* arithmetic needs no verb */
        }
    }
    const char *none = d->n_steps == STEPS_MAX || d->tries++ >= TRIES_MAX
                           ? "the goal has too many parts; give a plan"
                       : d->index.n == 0 ? "no agent with skills is registered"
                       : d->verb == s.to ? "it does not name what is to be done"
                                         : NULL;
    if (none != NULL) {
        return because(d, "%s", none);
    }
    d->fill.span = s;
    d->fill.previous = d->n_steps > 0 ? d->steps[d->n_steps - 1].route.step_id : STR_LIT("");
    const struct token *word = &tokens[d->verb];
    const uint32_t n = index_search(&d->index, &d->goal, s, word->term, hits, CANDIDATES_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (can_do(d, hits[i].entry)) {
            add_step(d, &hits[i], i + 1 < n ? &hits[i + 1] : NULL);
            return true;
        }
        memcpy(best, i == 0 ? d->reason : best, sizeof best);
    }
    return n > 0 ? because(d, "%s", best)
                 : because(d, "no skill is called \"%.*s\"", CUT(word->text, WORD_SHOWN));
}

/* ---- one piece ---- */

/* Steps for all of the span, or none: split where both sides can be done, else as one. */
static bool route_all(struct drafter *d, struct span s)
{
    const uint32_t had = d->n_steps;
    for (uint32_t i = s.from + 1; i + 1 < s.to && d->tries < TRIES_MAX; i++) {
        const bool joins = d->goal.tokens[i].kind == TOKEN_AND;
        const struct token *first = &d->goal.tokens[i + joins];
        const bool begins = first->kind == TOKEN_EXPRESSION ||
                            (first->content && d->goal.terms[first->term].called);
        if ((joins || d->goal.tokens[i - 1].pause) && begins &&
            route(d, (struct span){s.from, i})) {
            if (route_all(d, (struct span){i + joins, s.to})) {
                return true;
            }
            d->n_steps = had;
        }
    }
    return route(d, s);
}

/* The beginning of the text in whole words, and a mark when that is not all. */
static void add_cut(struct buf *out, struct str text, size_t max)
{
    const size_t n = utf8_cut_words(text.ptr, text.len, max);
    buf_add(out, text.ptr, n);
    buf_add_cstr(out, n < text.len ? "..." : "");
}

static void refuse(struct drafter *d, uint32_t ix)
{
    const struct piece *p = &d->goal.pieces[ix];
    const struct str clause = goal_text(&d->goal, p->tokens);
    struct hit nearest[NEAREST];
    struct buf out;
    if (p->refused != NULL) {
        because(d, "\"%.*s\" %s; write a plan, or let a model plan (planner llm)",
                CUT(p->refused_words, WORD_SHOWN), p->refused);
    }
    buf_init(&out, 4 * TEXT_MAX);
    buf_add_cstr(&out, p->refused != NULL ? "words cannot plan \"" : "no agent can do \"");
    add_cut(&out, clause, CLAUSE_SHOWN);
    buf_add_byte(&out, '"');
    if (d->goal.n_pieces > 1) {
        buf_printf(&out, " (part %u of %u)", ix + 1, d->goal.n_pieces);
    }
    buf_printf(&out, ": %s", d->reason);
    const uint32_t n = index_search(&d->index, &d->goal, p->tokens, TERM_NONE, nearest, NEAREST);
    buf_add_cstr(&out, n == 0 ? "\nNearest: none" : "\nNearest: ");
    for (uint32_t i = 0; i < n; i++) {
        const struct str about = nearest[i].entry->skill->description;
        buf_printf(&out, "%s" NAME_FMT, i > 0 ? ", " : "", NAME_ARG(nearest[i].entry));
        if (about.len > 0) {
            buf_add_cstr(&out, " (");
            add_cut(&out, about, ABOUT_SHOWN);
            buf_add_byte(&out, ')');
        }
    }
    d->result->unrouted[d->result->n_unrouted++] = keep_buf(d, &out);
}

/* ---- the plan ---- */

static void put_plan(struct drafter *d)
{
    struct goal *g = &d->goal;
    struct planner_result *r = d->result;
    struct buf out;
    bool fed = true;
    buf_init(&out, LIMIT_CONTROL_BYTES);
    doc_put_map(&out, 1);
    doc_put_cstr(&out, "steps");
    doc_put_array(&out, d->n_steps);
    for (uint32_t i = 0; i < d->n_steps; i++) {
        const struct step *s = &d->steps[i];
        const bool parameters = doc_head(s->parameters).n > 0;
        fed = i == 0 || (fed && s->fed); /* as is each one between it and the first */
        r->routes[r->n_routes++] = s->route;
        doc_put_map(&out, 4u + parameters + (fed && i > 0));
        if (fed && i > 0) { /* nothing is read from a context, which could only be cut */
            doc_put_cstr(&out, "contextScope");
            doc_put_cstr(&out, "none");
        }
        doc_put_cstr(&out, "stepId");
        doc_put_str(&out, s->route.step_id);
        doc_put_cstr(&out, "agentId");
        doc_put_str(&out, s->route.agent_id);
        doc_put_cstr(&out, "skill");
        doc_put_str(&out, s->route.skill);
        doc_put_cstr(&out, "task");
        doc_put_str(&out, goal_text(g, s->tokens));
        if (parameters) {
            doc_put_cstr(&out, "parameters");
            doc_put_doc(&out, s->parameters);
        }
    }
    g->code = buf_check(&out, g->err);
    if (g->code == BT_OK && r->n_unrouted > 0 && !(d->request->allow_unrouted && d->n_steps > 0)) {
        g->code = err_set(g->err, BT_INVALID, "%.*s", CUT(r->unrouted[0], BT_ERROR_MSG_MAX - 1));
    } else if (g->code == BT_OK) {
        r->plan = doc_copy(g->arena, doc_from_buf(&out));
        g->code = r->plan.ptr != NULL ? BT_OK : goal_nomem(g);
    }
    buf_done(&out);
}

static void draft(struct drafter *d)
{
    struct goal *g = &d->goal;
    goal_split(g);
    if (g->code == BT_OK && g->n_pieces == 0) {
        g->code = err_set(g->err, BT_INVALID, "the goal is empty; say what is to be done");
    }
    index_build(&d->index, d->request, g);
    for (uint32_t i = 0; i < g->n_pieces && g->code == BT_OK; i++) {
        if (g->pieces[i].refused != NULL || !route_all(d, g->pieces[i].tokens)) {
            refuse(d, i);
        }
    }
    if (g->code == BT_OK) {
        put_plan(d);
    }
}

enum bt_code planner_plan(const struct planner_request *request, struct arena *arena,
                          struct planner_result *ret, struct bt_error *err)
{
    struct drafter *d = arena_alloc(arena, sizeof *d);
    *ret = (struct planner_result){.routes = arena_alloc(arena, STEPS_MAX * sizeof ret->routes[0]),
                                   .unrouted =
                                       arena_alloc(arena, STEPS_MAX * sizeof ret->unrouted[0])};
    if (request->goal.len > LIMIT_TASK_BYTES) {
        return err_set(err, BT_LIMIT, "the goal is longer than %u bytes; give a plan instead",
                       (unsigned)LIMIT_TASK_BYTES);
    }
    if (d == NULL || ret->routes == NULL || ret->unrouted == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a plan");
    }
    d->request = request;
    d->result = ret;
    d->fill.goal = &d->goal;
    d->goal.text = request->goal;
    d->goal.arena = arena;
    d->goal.err = err;
    d->goal.stemmer = sb_stemmer_new("english", "UTF_8");
    buf_init(&d->fill.members, LIMIT_CONTROL_BYTES / 4);
    if (d->goal.stemmer == NULL) {
        (void)goal_nomem(&d->goal);
    } else {
        draft(d);
    }
    sb_stemmer_delete(d->goal.stemmer);
    buf_done(&d->fill.members);
    return d->goal.code;
}
