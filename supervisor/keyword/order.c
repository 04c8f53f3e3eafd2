#include "supervisor/keyword/order.h"

#include "supervisor/keyword/order_parts.h"
#include "supervisor/keyword/phrase.h"

static const char *const beside_phrases[] = {
    "at the same time", "all at the same time", "in parallel", "in parallel with", "simultaneously",
    "concurrently",     "side by side",         "meanwhile",   "in the meantime",  "all at once"};
static const char *const meanwhile_phrases[] = {"meanwhile", "in the meantime"};

/* ---- side by side ---- */

/* Behind "in parallel": "with", "as", ":" and commas are not part of what is to be done. */
static struct str behind_phrase(struct str text, size_t at, bool *ret_colon)
{
    struct str rest = phrase_strip(phrase_cut(text, at, text.len));
    *ret_colon = rest.len > 0 && rest.ptr[0] == ':';
    rest = clauses_trim(rest, NULL);
    const size_t with = phrase_begins(rest, "with") + phrase_begins(rest, "as");
    return clauses_trim(phrase_cut(rest, with, rest.len), NULL);
}

/* "do the following in parallel": words that name nothing to do. */
static bool is_filler(const struct builder *b, struct str text)
{
    static const char *const words[] = {"do",    "these",  "the",   "following", "things", "all",
                                        "this",  "steps",  "tasks", "run",       "them",   "two",
                                        "three", "please", "work",  "jobs",      "both",   "of"};
    struct str word;
    size_t at = 0;
    (void)b;
    while (phrase_word(text, &at, &word)) {
        if (!phrase_is(word, PHRASE_LIST(words))) {
            return false;
        }
    }
    return true;
}

/* A part that may hold "in parallel". */
static void add_part(struct builder *b, struct str text, bool then)
{
    size_t n = 0;
    bool colon = false;
    const size_t at = phrase_find(text, PHRASE_LIST(beside_phrases), &n);
    if (at == PHRASE_NONE) {
        builder_sequence(b, text);
        return;
    }
    const struct str left = clauses_trim(phrase_cut(text, 0, at), NULL);
    const struct str right = behind_phrase(text, at + n, &colon);
    const bool filler = is_filler(b, left);
    if (right.len == 0) { /* "read a and list b in parallel" */
        builder_beside(b, left, b->n > 0 && !then && b->link == LINK_THEN);
        return;
    }
    if (!filler && !colon) { /* "read a and in parallel list b" */
        builder_sequence(b, left);
        builder_link(b, LINK_BESIDE);
    } else if (b->n > 0 && !then && !colon && b->link == LINK_THEN) { /* "Meanwhile, list b" */
        builder_link(b, LINK_BESIDE);
    }
    if (phrase_begins(phrase_cut(text, at, text.len), meanwhile_phrases[0]) +
            phrase_begins(phrase_cut(text, at, text.len), meanwhile_phrases[1]) >
        0) {
        builder_sequence(b, right); /* a branch of its own */
    } else {
        builder_beside(b, right, false);
    }
}

/* What follows a comma: it may go on with "then". */
static void add_rest(struct builder *b, struct str text, bool beside)
{
    struct piece pieces[CLAUSES_MAX];
    const uint32_t n = clauses_split(text, pieces);
    b->full = b->full || n > CLAUSES_MAX;
    for (uint32_t i = 0; i < n && !b->full; i++) {
        if (i == 0 && beside) {
            builder_link(b, LINK_BESIDE);
            builder_beside(b, pieces[i].text, false);
        } else {
            add_part(b, pieces[i].text, true);
        }
    }
}

/* ---- after, before, once, while ---- */

/* "that is done", "you have read a.log": without what says only that it is over. */
static struct str bare(struct str text)
{
    static const char *const front[] = {"you have", "we have", "you",        "we",
                                        "having",   "all of",  "the work of"};
    static const char *const back[] = {
        "is done",       "are done",     "has finished",  "is finished", "are finished",
        "is complete",   "is completed", "is ready",      "are ready",   "is over",
        "are complete",  "finishes",     "done",          "finished",    "completed",
        "has been done", "ready",        "have finished", "complete"};
    text = phrase_strip(text);
    for (size_t i = 0; i < sizeof front / sizeof front[0]; i++) {
        const size_t n = phrase_begins(text, front[i]);
        if (n > 0) {
            text = phrase_strip(phrase_cut(text, n, text.len));
            break;
        }
    }
    for (size_t i = 0; i < sizeof back / sizeof back[0]; i++) {
        const size_t n = strlen(back[i]);
        if (text.len >= n && (text.len == n || phrase_blank(text.ptr[text.len - n - 1])) &&
            phrase_begins(phrase_cut(text, text.len - n, text.len), back[i]) == n) {
            return phrase_strip(phrase_cut(text, 0, text.len - n));
        }
    }
    return text;
}

/* second follows first, which may have been said before. */
static void add_after(struct builder *b, struct str first, struct str second)
{
    uint32_t ref;
    first = bare(clauses_trim(first, NULL));
    switch (builder_refer(b, first, &ref)) {
    case REFERS_TO_ALL:
        break;
    case REFERS_TO_ONE:
        builder_link_after(b, ref);
        break;
    case REFERS_TO_NOTHING:
        add_part(b, first, false);
        break;
    }
    add_rest(b, second, false);
}

/* first comes before second, which may have been said before. */
static void add_before(struct builder *b, struct str first, struct str second)
{
    uint32_t ref = b->n - 1;
    second = bare(clauses_trim(second, NULL));
    first = clauses_trim(first, NULL);
    if (b->n > 0 && builder_refer(b, second, &ref) != REFERS_TO_NOTHING) {
        builder_insert(b, ref, first);
        return;
    }
    add_part(b, first, false);
    add_part(b, second, true);
}

/* A word that two parts hang on. */
struct hinge {
    const char *word;
    enum { HINGE_AFTER, HINGE_BEFORE, HINGE_ONCE, HINGE_WHILE } kind;
};
static const struct hinge hinges[] = {
    {"after", HINGE_AFTER},     {"as soon as", HINGE_ONCE},    {"once", HINGE_ONCE},
    {"when", HINGE_ONCE},       {"before", HINGE_BEFORE},      {"while", HINGE_WHILE},
    {"prior to", HINGE_BEFORE}, {"followed by", HINGE_BEFORE}, {"preceded by", HINGE_AFTER},
};

static void hang(struct builder *b, const struct hinge *h, struct str named, struct str rest)
{
    switch (h->kind) {
    case HINGE_AFTER:
    case HINGE_ONCE:
        add_after(b, named, rest);
        break;
    case HINGE_BEFORE:
        add_before(b, rest, named);
        break;
    case HINGE_WHILE:
        add_part(b, clauses_trim(named, NULL), true);
        add_rest(b, rest, true);
        break;
    }
}

/* "after that is done, report" and the like: the named part goes to a comma or to "then". */
static bool opens(struct builder *b, struct str text)
{
    static const char *const then[] = {"then"};
    for (size_t i = 0; i < sizeof hinges / sizeof hinges[0]; i++) {
        const size_t n = phrase_begins(text, hinges[i].word);
        if (n == 0) {
            continue;
        }
        const struct str named = phrase_cut(text, n, text.len);
        size_t skip = 1;
        size_t end = phrase_comma(named);
        if (end == PHRASE_NONE) {
            end = phrase_find(named, PHRASE_LIST(then), &skip);
        }
        if (end == PHRASE_NONE || unsaid_is_time(named)) {
            builder_unsaid(b, text, end == PHRASE_NONE ? UNSAID_ORDER : UNSAID_TIME,
                           phrase_cut(text, 0, n));
            return true;
        }
        hang(b, &hinges[i], phrase_cut(named, 0, end), phrase_cut(named, end + skip, named.len));
        return true;
    }
    return false;
}

/* Whether the text names something to do ("counting"), or behind "once" its end ("that is done").
 */
static bool names_work(const struct builder *b, const struct hinge *h, struct str text)
{
    struct str word;
    size_t at = 0;
    if (h->kind == HINGE_ONCE) {
        return bare(text).len < phrase_strip(text).len;
    }
    return phrase_word(text, &at, &word) && phrase_gerund(word) && verbs_know(b->verbs, word);
}

/* "report it after counting", "read a while listing b". */
static bool hangs(struct builder *b, struct str text)
{
    struct str word;
    size_t at = 0;
    while (phrase_word(text, &at, &word)) {
        const size_t start = (size_t)(word.ptr - text.ptr);
        const struct str rest = phrase_cut(text, start, text.len);
        for (size_t i = 0; i < sizeof hinges / sizeof hinges[0] && start > 0; i++) {
            const struct hinge *h = &hinges[i];
            const size_t n = phrase_begins(rest, h->word);
            const struct str named = phrase_cut(rest, n, rest.len);
            const struct str left = phrase_cut(text, 0, start);
            if (n == 0 || !names_work(b, h, named)) {
                continue;
            }
            if (h->kind == HINGE_WHILE) { /* the left one is named first */
                hang(b, h, left, named);
            } else {
                hang(b, h, named, left);
            }
            return true;
        }
    }
    return false;
}

/* ---- all ---- */

static void add_piece(struct builder *b, const struct piece *piece)
{
    struct str words = {NULL, 0};
    enum unsaid_kind unsaid = unsaid_find(piece->text, &words);

    unsaid = unsaid == UNSAID_NOTHING ? unsaid_work(piece->text, b->verbs, &words) : unsaid;
    if (unsaid != UNSAID_NOTHING) {
        builder_unsaid(b, piece->text, unsaid, words);
    } else if (!opens(b, piece->text) && !hangs(b, piece->text)) {
        add_part(b, piece->text, piece->then);
    }
}

/* "Do the following in parallel:" before a list, and "Steps:". */
static bool is_heading(const struct builder *b, const struct piece *pieces, uint32_t n, uint32_t i)
{
    struct str word;
    size_t at = 0;
    size_t len;
    if (!pieces[i].colon || i + 1 == n || !pieces[i + 1].listed) {
        return false;
    }
    if (phrase_find(pieces[i].text, PHRASE_LIST(beside_phrases), &len) != PHRASE_NONE) {
        return true;
    }
    return is_filler(b, pieces[i].text) ||
           (phrase_word(pieces[i].text, &at, &word) && !verbs_know(b->verbs, word) &&
            !verbs_begin(b->verbs, pieces[i].text));
}

enum bt_code order_make(struct str goal, const struct verbs *verbs, struct arena *arena,
                        struct order *ret, struct bt_error *err)
{
    struct piece pieces[CLAUSES_MAX];
    struct builder b = {.verbs = verbs, .arena = arena, .at = ret->at};
    const uint32_t n = clauses_split(goal, pieces);
    bool list = false; /* its items are side by side */
    uint32_t indent = 0;
    uint64_t base = 0;
    for (uint32_t i = 0; i < n && n <= CLAUSES_MAX; i++) {
        size_t len;
        if (is_heading(&b, pieces, n, i)) {
            list = phrase_find(pieces[i].text, PHRASE_LIST(beside_phrases), &len) != PHRASE_NONE;
            indent = pieces[i + 1].indent;
            builder_link(&b, LINK_THEN);
            add_piece(&b, &pieces[++i]);
            base = b.base;
            continue;
        }
        list = list && pieces[i].listed;
        if (list && b.n > 0 && pieces[i].indent <= indent) {
            builder_link(&b, LINK_BESIDE);
            b.base = base;
        } else if (list && b.n > 0) { /* below an item: after it */
            builder_link_after(&b, b.n - 1);
        }
        add_piece(&b, &pieces[i]);
    }
    ret->n = b.n;
    if (b.full || n > CLAUSES_MAX) {
        return err_set(err, BT_LIMIT, "the goal has more than %d parts; give a plan instead",
                       CLAUSES_MAX);
    }
    return b.oom ? err_set(err, BT_NOMEM, "out of memory for a plan") : BT_OK;
}
