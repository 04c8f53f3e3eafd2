#include "agents/llm/model/text_filter.h"

static const char lone_close[] = "</think>";
static const char lone_open[] = "<think>";
static const char mark[] = "\xef\xbb\xbf";

void text_filter_init(struct text_filter *s, const struct secrets *secrets, size_t max_bytes)
{
    *s = (struct text_filter){.secrets = secrets};
    buf_init(&s->out, max_bytes);
}

void text_filter_done(struct text_filter *s)
{
    buf_done(&s->out);
}

static void skip_spaces(struct text_filter *s, struct str raw)
{
    while (s->consumed < raw.len && str_is_space(raw.ptr[s->consumed])) {
        s->consumed++;
    }
}

/* Whether the text continues with the tag; -1 = unknown before more text arrives. */
static int has_prefix(const struct text_filter *s, struct str raw, const char *tag, bool last)
{
    size_t left = raw.len - s->consumed;
    size_t n = strlen(tag);

    if (left >= n) {
        return memcmp(raw.ptr + s->consumed, tag, n) == 0;
    }
    return !last && memcmp(raw.ptr + s->consumed, tag, left) == 0 ? -1 : 0;
}

/* Skips reasoning at the beginning. False: it needs more text first. */
static bool skip_start(struct text_filter *s, struct str raw, bool last)
{
    static const char *const tags[][2] = {{"<think>", "</think>"}, {"<thinking>", "</thinking>"}};
    bool wait = false;

    if (s->consumed == 0 && has_prefix(s, raw, mark, last) != 0) {
        s->consumed = raw.len < strlen(mark) ? 0 : strlen(mark);
        wait = s->consumed == 0;
    }
    skip_spaces(s, raw);
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        int is = has_prefix(s, raw, tags[i][0], last);
        if (is > 0) {
            s->close = tags[i][1];
            s->consumed += strlen(tags[i][0]);
            s->searched = s->consumed;
            s->state = TEXT_FILTER_REASONING;
            return true;
        }
        wait = wait || is < 0;
    }
    if (!wait) {
        s->state = TEXT_FILTER_ANSWER;
        s->searched = s->consumed;
    }
    return !wait;
}

/* Searches the tag from the last searched position; NULL when it has not arrived. */
static const char *find(const struct text_filter *s, struct str raw, const char *tag)
{
    return raw.len == s->searched
               ? NULL
               : memmem(raw.ptr + s->searched, raw.len - s->searched, tag, strlen(tag));
}

/* Keeps the end of the text in the search range: it may be the beginning of a tag. */
static void advance_search(struct text_filter *s, struct str raw, size_t longest)
{
    size_t from = raw.len > longest - 1 ? raw.len - (longest - 1) : 0;

    s->searched = from > s->searched ? from : s->searched;
}

static bool skip_reasoning(struct text_filter *s, struct str raw)
{
    const char *end = find(s, raw, s->close);

    if (end == NULL) {
        advance_search(s, raw, strlen(s->close));
        return false;
    }
    s->consumed = (size_t)(end - raw.ptr) + strlen(s->close);
    s->state = TEXT_FILTER_BEGIN;
    return true;
}

/* Some chat templates put the opening tag into the prompt: only the closing one arrives, after
 * reasoning that looked like an answer. */
static void check_lone_tag(struct text_filter *s, struct str raw)
{
    const char *close;
    const char *open;

    if (s->tags_closed) {
        return;
    }
    close = find(s, raw, lone_close);
    open = find(s, raw, lone_open);
    if (open != NULL && (close == NULL || open < close)) {
        s->tags_closed = true;
    } else if (close != NULL) {
        s->tags_closed = true;
        s->consumed = (size_t)(close - raw.ptr) + strlen(lone_close);
        s->reset = s->reset || s->emitted;
        s->emitted = false;
        buf_clear(&s->out);
    } else {
        advance_search(s, raw, sizeof lone_close - 1);
    }
}

static void emit_answer(struct text_filter *s, struct str raw, bool last)
{
    size_t end = raw.len;

    check_lone_tag(s, raw);
    if (!s->emitted) {
        skip_spaces(s, raw);
    }
    while (end > s->consumed && str_is_space(raw.ptr[end - 1])) {
        end--; /* spaces at the end of the answer are dropped */
    }
    if (end > s->consumed) {
        size_t n = secrets_redact_stream(
            s->secrets, (struct str){raw.ptr + s->consumed, end - s->consumed},
            s->consumed > 0 ? raw.ptr[s->consumed - 1] : ' ', last, &s->out);
        s->consumed += n;
        s->emitted = s->emitted || n > 0;
    }
}

void text_filter_feed(struct text_filter *s, struct str raw, bool last)
{
    bool more = raw.len > 0;

    while (more && s->state != TEXT_FILTER_ANSWER) {
        more = s->state == TEXT_FILTER_BEGIN ? skip_start(s, raw, last) : skip_reasoning(s, raw);
    }
    if (raw.len > 0 && s->state == TEXT_FILTER_ANSWER) {
        emit_answer(s, raw, last);
    }
}
