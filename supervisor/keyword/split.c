/*
 * A goal into tokens, and tokens into pieces: the things to do, one after the other. A piece ends
 * at a new line, ";" and "then" (or "finally", "after that", ...). What "and", commas and
 * full stops join stays one piece: only keyword.c knows whether agents can do both sides.
 */
#include "supervisor/keyword/keyword_internal.h"

struct lexer {
    struct goal *g;
    size_t at;
    size_t no_expression; /* none begins before it */
    bool line;            /* nothing of the line was read yet */
    bool breaks;          /* of the next token */
    bool list;            /* in square brackets: a comma is between two values */
    struct buf symbols;   /* of an expression */
};

/* ---- tokens ---- */

/* `word`: what it counts as when skills are looked for; "" = nothing. */
static void add(struct lexer *l, enum token_kind kind, struct str text, size_t to, const char *word)
{
    struct goal *g = l->g;
    if (g->n == TOKENS_MAX) {
        g->code =
            err_set(g->err, BT_LIMIT, "the goal has more than %d words; give a plan", TOKENS_MAX);
    } else {
        g->tokens[g->n++] = (struct token){
            .kind = kind, .breaks = l->breaks, .text = text, .from = l->at, .to = to};
        g->tokens[g->n - 1].term = word[0] != '\0' ? goal_add_term(g, str_from(word)) : TERM_NONE;
    }
    l->breaks = false;
    l->at = to;
}

static void add_word(struct lexer *l, size_t to)
{
    struct goal *g = l->g;
    const struct str text = {g->text.ptr + l->at, to - l->at};
    const struct str before = g->n > 0 && !l->breaks ? g->tokens[g->n - 1].text : STR_LIT("");
    const bool asks = word_in(before, "tell give show get") && word_in(text, "me us");
    const bool polite = word_in(before, "do") && word_in(text, "you we i they");
    const bool counts = word_in(before, "how") && word_in(text, "many");
    if (asks || polite) {
        g->tokens[g->n - 1].content = false;
    }
    add(l, word_in(text, "and") ? TOKEN_AND : TOKEN_WORD, text, to, counts ? "count" : "");
    struct token *word = &g->tokens[g->n - 1];
    word->content = word->kind == TOKEN_WORD && (counts || !word_is_frame(text));
    word->term = word->content && !counts ? goal_add_term(g, text) : word->term;
}

/* The words of a token: "count_per_day" has three, "don't" is one. */
static void add_words(struct lexer *l, size_t end)
{
    const char *text = l->g->text.ptr;
    while (l->at < end) {
        size_t to = l->at;
        while (to < end && text_in_word(text[to])) {
            to++;
            to += to + 1 < end && text[to] == '\'';
        }
        if (to > l->at) {
            add_word(l, to);
        } else {
            l->at++;
        }
    }
}

/* Where the text in quotes ends that begins here; 0 = none does. */
static size_t quote_end(const struct lexer *l)
{
    const char *from = l->g->text.ptr + l->at;
    const size_t rest = l->g->text.len - l->at - 1;
    const char *end = text_is_one_of(*from, "\"`'") ? memchr(from + 1, *from, rest) : NULL;
    const bool whole = end != NULL && memchr(from, '\n', (size_t)(end - from)) == NULL;
    return whole ? (size_t)(end - l->g->text.ptr) + 1 : 0;
}

static void read_token(struct lexer *l)
{
    const struct str text = l->g->text;
    const size_t from = l->at;
    const size_t quote = quote_end(l);
    if (quote > 0) {
        add(l, TOKEN_QUOTE, (struct str){text.ptr + from + 1, quote - from - 2}, quote, "");
        return;
    }
    buf_clear(&l->symbols);
    const size_t sum = expression_read(text, from, &l->no_expression, &l->symbols);
    if (sum > from) {
        add(l, TOKEN_EXPRESSION, goal_keep(l->g, buf_str(&l->symbols)), sum, "compute");
        return;
    }
    size_t to = from;
    while (to < text.len && !text_is_one_of(text.ptr[to], BLANKS) &&
           !text_is_one_of(text.ptr[to], l->list ? "\"`()[]{};," : "\"`()[]{};")) {
        to++;
    }
    while (to > from && text_is_one_of(text.ptr[to - 1], ",;:.!?")) {
        to--;
    }
    const struct str token = {text.ptr + from, to - from};
    const bool number = text_is_number(token);
    const bool listed = number && l->line && to < text.len && text_is_one_of(text.ptr[to], ".)");
    l->at += listed ? token.len : token.len == 0; /* "1." of a list; a bracket or a mark alone */
    if (text_is_url(token)) {
        add(l, TOKEN_URL, token, to, "url");
    } else if (text_is_path(token)) {
        add(l, TOKEN_PATH, token, to, "file");
    } else if (number && !listed) {
        add(l, TOKEN_NUMBER, token, to, "");
    } else {
        add_words(l, to);
    }
}

static void read_tokens(struct lexer *l)
{
    const struct str text = l->g->text;
    while (l->at < text.len && l->g->code == BT_OK) {
        const char c = text.ptr[l->at];
        l->line = l->line || c == '\n';
        l->breaks = l->breaks || c == '\n' || c == ';';
        if (l->g->n > 0 && text_is_one_of(c, ",:.!?")) {
            l->g->tokens[l->g->n - 1].pause = true;
        }
        l->list = c == '[' || (l->list && c != ']');
        if (text_is_one_of(c, BLANKS ",;:!?)]}=")) {
            l->at++;
        } else {
            read_token(l);
            l->line = false;
        }
    }
}

/* ---- phrases ---- */

/* How many tokens from `at` on are one of "in parallel|at the same time"; 0 = none. */
static uint32_t phrase_at(const struct goal *g, uint32_t at, uint32_t to, const char *list)
{
    for (; *list != '\0'; list += *list == '|') {
        uint32_t n = 0;
        bool same = true;
        while (*list != '\0' && *list != '|') {
            char word[16] = "";
            const size_t len = strcspn(list, " |");
            memcpy(word, list, len < sizeof word ? len : 0);
            same = same && at + n < to && g->tokens[at + n].kind < TOKEN_QUOTE &&
                   word_in(g->tokens[at + n].text, word);
            n++;
            list += len + (list[len] == ' ');
        }
        if (same) {
            return n;
        }
    }
    return 0;
}

/* What a plan from words cannot express. */
static const struct {
    const char *why, *phrases;
} limits[] = {
    {"is a condition", "if|unless|otherwise|else|when|whenever|in case|provided|depending|"
                       "on failure|on error"},
    {"is a loop", "until|while|repeat|repeatedly|retry|for each|for every|each of|as long as|"
                  "over and over|twice"},
    {"is a time", "every second|every minute|every hour|every day|every night|every morning|"
                  "every week|every month|once a|once per|tomorrow|tonight|later"},
    {"leaves open what comes first", "before|after|once|meanwhile|followed by|preceded by|"
                                     "prior to|as soon as|in reverse"},
    {"names what is not to be done", "not|never|no|none|without|except|instead|but|neither|nor|"
                                     "cannot|avoid|rather than"},
    {"sets things side by side", "in parallel|at the same time|simultaneously|concurrently"},
    {"is a choice", "or|either"},
};

static void find_limit(const struct goal *g, struct piece *p)
{
    for (uint32_t i = p->tokens.from; i < p->tokens.to && p->refused == NULL; i++) {
        const struct token *t = &g->tokens[i];
        const struct str s = t->text;
        const bool clock = t->kind == TOKEN_NUMBER && memchr(s.ptr, ':', s.len) != NULL;
        const bool negated =
            t->kind == TOKEN_WORD && s.len > 3 && memcmp(s.ptr + s.len - 2, "'t", 2) == 0;
        uint32_t n = 1;
        p->refused = clock ? "is a time" : negated ? "names what is not to be done" : NULL;
        for (size_t k = 0; k < sizeof limits / sizeof limits[0] && p->refused == NULL; k++) {
            n = phrase_at(g, i, p->tokens.to, limits[k].phrases);
            p->refused = n > 0 ? limits[k].why : NULL;
        }
        p->refused_words = goal_text(g, (struct span){i, i + n});
    }
}

/* How many of the brackets in the text it does not close itself. */
static uint32_t open_brackets(struct str text)
{
    uint32_t open = 0;
    for (size_t i = 0; i < text.len; i++) {
        open += text_is_one_of(text.ptr[i], "([{");
        open -= open > 0 && text_is_one_of(text.ptr[i], ")]}");
    }
    return open;
}

struct str goal_text(const struct goal *g, struct span s)
{
    if (s.from >= s.to) {
        return (struct str){g->text.ptr, 0};
    }
    const char *from = g->text.ptr + g->tokens[s.from].from;
    size_t to = g->tokens[s.to - 1].to;
    uint32_t open = open_brackets((struct str){from, (size_t)(g->text.ptr + to - from)});
    /* Marks and brackets are no tokens: those that close the text's own belong to it. */
    for (size_t i = to; open > 0 && i < g->text.len; i++) {
        if (text_is_one_of(g->text.ptr[i], ")]}")) {
            open--;
            to = i + 1;
        } else if (!text_is_one_of(g->text.ptr[i], BLANKS ",;:.!?")) {
            break;
        }
    }
    return (struct str){from, (size_t)(g->text.ptr + to - from)};
}

bool goal_asks(const struct goal *g, struct span s)
{
    return s.from < s.to && !g->tokens[s.from].content && /* "show", but not "show me" */
           word_in(g->tokens[s.from].text, "what what's whats which how is are tell give show get");
}

/* ---- pieces ---- */

static void end_piece(struct goal *g, uint32_t from, uint32_t to)
{
    while (from < to && g->tokens[to - 1].kind == TOKEN_AND) {
        to--;
    }
    for (uint32_t n = 1; from + 1 < to && n > 0; from += n) {
        n = phrase_at(g, from, to, "and|first|firstly|secondly|hey|hi|ok|okay");
    }
    if (from < to && g->n_pieces == STEPS_MAX) {
        g->code =
            err_set(g->err, BT_LIMIT, "the goal has more than %d parts; give a plan", STEPS_MAX);
    } else if (from < to) {
        g->pieces[g->n_pieces] = (struct piece){.tokens = {from, to}};
        find_limit(g, &g->pieces[g->n_pieces++]);
    }
}

void goal_split(struct goal *g)
{
    struct lexer l = {.g = g, .line = true};
    uint32_t from = 0;
    buf_init(&l.symbols, 4 * g->text.len + 64);
    read_tokens(&l);
    buf_done(&l.symbols);
    for (uint32_t i = 0; i < g->n && g->code == BT_OK; i++) {
        const uint32_t order =
            phrase_at(g, i, g->n, "then|next|afterwards|after that|finally|lastly|subsequently");
        if (order > 0 || g->tokens[i].breaks) {
            end_piece(g, from, i);
            from = i + order;
        }
    }
    end_piece(g, from, g->n);
}
