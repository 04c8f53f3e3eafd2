#include "supervisor/keyword/order_parts.h"

#include "protocol/base/buf.h"
#include "protocol/limits.h"
#include "supervisor/keyword/phrase.h"
#include "supervisor/keyword/words.h"

enum { REFER_WORDS_MAX = 12 };

/* ---- links ---- */

void builder_link(struct builder *b, enum link link)
{
    b->link = b->n == 0 ? LINK_THEN : link;
}

void builder_link_after(struct builder *b, uint32_t ref)
{
    b->link = LINK_AFTER;
    b->ref = ref;
}

static uint64_t bit(uint32_t ix)
{
    return UINT64_C(1) << ix;
}

static struct clause *add(struct builder *b, struct str text)
{
    const uint32_t ix = b->n;
    if (text.len == 0) {
        return NULL;
    }
    if (ix == CLAUSES_MAX) {
        b->full = true;
        return NULL;
    }
    struct clause *c = &b->at[b->n++];
    *c = (struct clause){.text = text};
    switch (b->link) {
    case LINK_THEN:
        c->after = b->base = b->frontier;
        b->frontier = bit(ix);
        break;
    case LINK_BESIDE:
        c->after = b->base;
        b->frontier |= bit(ix);
        break;
    case LINK_AFTER:
        c->after = bit(b->ref);
        b->base = c->after;
        b->frontier = (b->frontier & ~bit(b->ref)) | bit(ix);
        break;
    }
    b->link = LINK_THEN;
    return c;
}

void builder_unsaid(struct builder *b, struct str text, enum unsaid_kind kind, struct str words)
{
    struct clause *c = add(b, text);
    if (c != NULL) {
        c->unsaid = kind;
        c->unsaid_words = words;
    }
}

/* ---- things of one verb ---- */

static bool is_thing(struct str word)
{
    const char c = word.len > 0 ? word.ptr[0] : '\0';
    return c == '"' || c == '`' || c == '\'' || token_is_path(word) || token_is_url(word);
}

/* "a.log, b.log and c.log" in a text: where the row begins and ends. */
struct row {
    struct str things[CLAUSES_MAX];
    uint32_t n;
    size_t from, to;
};

static bool is_and(struct str word)
{
    static const char *const ands[] = {"and", "&"};
    return phrase_is(word, PHRASE_LIST(ands));
}

static bool find_row(struct str text, struct row *ret)
{
    struct str word;
    size_t at = 0;
    bool joined = false;
    ret->n = 0;
    while (phrase_word(text, &at, &word)) {
        if (is_thing(word) && (ret->n == 0 || joined) && ret->n < CLAUSES_MAX) {
            ret->from = ret->n == 0 ? (size_t)(word.ptr - text.ptr) : ret->from;
            ret->to = (size_t)(word.ptr - text.ptr) + word.len;
            ret->things[ret->n++] = word;
            joined = ret->to < text.len && text.ptr[ret->to] == ',';
        } else if (ret->n > 0 && is_and(word) && ret->to < (size_t)(word.ptr - text.ptr)) {
            joined = true;
        } else if (ret->n > 0) {
            break;
        }
    }
    return ret->n > 1;
}

/* What is before the row, without "both" at its end. */
static struct str before_row(struct str text, const struct row *row)
{
    static const char *const both[] = {"both"};
    struct str front = phrase_strip(phrase_cut(text, 0, row->from));
    size_t n;
    const size_t at = phrase_find(front, both, 1, &n);
    return at != PHRASE_NONE && at + n == front.len ? phrase_strip(phrase_cut(front, 0, at))
                                                    : front;
}

/* "compare a.log and b.log": one thing to do with two. */
static bool brings_together(struct str text)
{
    static const char *const words[] = {"compare",  "merge",       "join",       "combine",
                                        "diff",     "concatenate", "difference", "between",
                                        "together", "differences"};
    size_t n;
    return phrase_find(text, PHRASE_LIST(words), &n) != PHRASE_NONE;
}

static void add_composed(struct builder *b, struct str front, struct str thing, struct str back)
{
    struct buf text;
    buf_init(&text, 4 * LIMIT_TASK_BYTES);
    buf_add_str(&text, front);
    buf_add_cstr(&text, front.len > 0 ? " " : "");
    buf_add_str(&text, thing);
    buf_add_cstr(&text, back.len > 0 ? " " : "");
    buf_add_str(&text, back);
    const struct str kept =
        text.bad == BT_OK ? arena_str(b->arena, buf_str(&text)) : (struct str){NULL, 0};
    b->oom = b->oom || kept.ptr == NULL;
    buf_done(&text);
    if (kept.ptr != NULL) {
        (void)add(b, kept);
    }
}

/* "read both a.log and b.log": each of them. False when the text has no such row. */
static bool add_row(struct builder *b, struct str text)
{
    struct row row = {.n = 0};
    if (!find_row(text, &row) || brings_together(text)) {
        return false;
    }
    const struct str front = before_row(text, &row);
    const struct str back = phrase_strip(phrase_cut(text, row.to, text.len));
    for (uint32_t i = 0; i < row.n; i++) {
        if (i > 0) {
            b->link = LINK_BESIDE;
        }
        add_composed(b, front, row.things[i], clauses_trim(back, NULL));
    }
    return true;
}

/* ---- "and" ---- */

/* The things to do of a text: it is cut before each verb that a comma or "and" stands before. */
static uint32_t items_of(const struct builder *b, struct str text, struct str ret[CLAUSES_MAX])
{
    struct str word;
    size_t at = 0;
    size_t from = 0;
    size_t gap = 0; /* where the comma or the "and" begins */
    bool open = false;
    uint32_t n = 0;
    while (phrase_word(text, &at, &word)) {
        const size_t start = (size_t)(word.ptr - text.ptr);
        if (open && n + 1 < CLAUSES_MAX &&
            verbs_begin(b->verbs, phrase_cut(text, start, text.len))) {
            ret[n++] = clauses_trim(phrase_cut(text, from, gap), NULL);
            from = start;
            open = false;
        }
        const size_t end = start + word.len;
        const bool comma = end < text.len && text.ptr[end] == ',';
        if (is_and(word)) {
            gap = open ? gap : start;
            open = start > from;
        } else {
            gap = end;
            open = comma;
        }
    }
    ret[n++] = clauses_trim(phrase_cut(text, from, text.len), NULL);
    return n;
}

/* "both read a and list b" */
static struct str without_both(struct str text, bool *ret_both)
{
    const size_t n = phrase_begins(text, "both");
    *ret_both = n > 0;
    return n > 0 ? clauses_trim(phrase_cut(text, n, text.len), NULL) : text;
}

static bool says_both(struct str text)
{
    static const char *const both[] = {"both"};
    size_t n;
    return phrase_find(text, both, 1, &n) != PHRASE_NONE;
}

void builder_sequence(struct builder *b, struct str text)
{
    struct str items[CLAUSES_MAX];
    bool both;
    text = without_both(text, &both);
    if (both) {
        builder_beside(b, text, false);
        return;
    }
    /* What follows something that stands beside others follows it alone. */
    const bool branch = b->link != LINK_THEN;
    const uint32_t n = items_of(b, text, items);
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0 && branch && b->n > 0) {
            builder_link_after(b, b->n - 1);
        }
        if (!says_both(items[i]) || !add_row(b, items[i])) {
            (void)add(b, items[i]);
        }
    }
}

void builder_beside(struct builder *b, struct str text, bool joins)
{
    struct str items[CLAUSES_MAX];
    bool both;
    text = without_both(text, &both);
    const uint32_t n = items_of(b, text, items);
    if (n == 1) {
        struct row row = {.n = 0};
        if (joins && !find_row(text, &row)) {
            b->link = LINK_BESIDE;
        }
        if (!add_row(b, items[0])) {
            (void)add(b, items[0]);
        }
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) {
            b->link = LINK_BESIDE;
        }
        (void)add(b, items[i]);
    }
}

/* ---- what was said before ---- */

static bool has_stem(struct str text, const struct word *stem)
{
    struct words words;
    struct word w;
    words_init(&words, text);
    while (words_next(&words, &w)) {
        if (str_eq((struct str){w.text, w.len}, (struct str){stem->text, stem->len})) {
            return true;
        }
    }
    return false;
}

/* Words that name no work. */
static bool is_empty_word(const struct word *w)
{
    static const char *const words[] = {
        "all",  "everything", "both", "done", "finished", "ready", "over", "has",
        "have", "been",       "had",  "work", "step",     "steps", "each", "complete"};
    return phrase_is(str_from(w->shown), PHRASE_LIST(words));
}

enum refers builder_refer(const struct builder *b, struct str text, uint32_t *ret_ref)
{
    struct word stems[REFER_WORDS_MAX];
    struct words words;
    struct word w;
    uint32_t n = 0;
    words_init(&words, text);
    while (words_next(&words, &w)) {
        if (is_empty_word(&w)) {
            continue;
        }
        if (n == REFER_WORDS_MAX) {
            return REFERS_TO_NOTHING;
        }
        stems[n++] = w;
    }
    if (n == 0) {
        return b->n > 0 ? REFERS_TO_ALL : REFERS_TO_NOTHING;
    }
    for (uint32_t i = b->n; i > 0; i--) {
        uint32_t found = 0;
        while (found < n && has_stem(b->at[i - 1].text, &stems[found])) {
            found++;
        }
        if (found == n) {
            *ret_ref = i - 1;
            return REFERS_TO_ONE;
        }
    }
    return REFERS_TO_NOTHING;
}

/* Makes room before clause ref: the bits of those behind it move up. */
static uint64_t moved(uint64_t mask, uint32_t ref)
{
    const uint64_t low = mask & (bit(ref) - 1);
    return low | ((mask & ~low) << 1);
}

static void insert_one(struct builder *b, uint32_t ref, struct str text)
{
    if (b->n == CLAUSES_MAX) {
        b->full = true;
        return;
    }
    memmove(&b->at[ref + 1], &b->at[ref], (b->n - ref) * sizeof b->at[0]);
    b->n++;
    for (uint32_t i = 0; i < b->n; i++) {
        b->at[i].after = moved(b->at[i].after, ref);
    }
    b->base = moved(b->base, ref);
    b->frontier = moved(b->frontier, ref);
    b->at[ref] = (struct clause){.text = text, .after = b->at[ref + 1].after};
    b->at[ref + 1].after = bit(ref);
}

void builder_insert(struct builder *b, uint32_t ref, struct str text)
{
    struct str items[CLAUSES_MAX];
    const uint32_t n = items_of(b, text, items);
    for (uint32_t i = 0; i < n && !b->full; i++) {
        if (items[i].len > 0) {
            insert_one(b, ref++, items[i]);
        }
    }
    b->link = LINK_THEN;
}
