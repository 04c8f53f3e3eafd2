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

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_spaces(struct text_filter *s, struct str raw)
{
    while (s->done < raw.len && is_space(raw.ptr[s->done])) {
        s->done++;
    }
}

/* Whether the text goes on with the tag: -1 = not known before more comes. */
static int begins(const struct text_filter *s, struct str raw, const char *tag, bool last)
{
    size_t left = raw.len - s->done;
    size_t n = strlen(tag);

    if (left >= n) {
        return memcmp(raw.ptr + s->done, tag, n) == 0;
    }
    return !last && memcmp(raw.ptr + s->done, tag, left) == 0 ? -1 : 0;
}

/* Reasoning at the beginning is left out. False: more has to come first. */
static bool begin(struct text_filter *s, struct str raw, bool last)
{
    static const char *const tags[][2] = {{"<think>", "</think>"}, {"<thinking>", "</thinking>"}};
    bool wait = false;

    if (s->done == 0 && begins(s, raw, mark, last) != 0) {
        s->done = raw.len < strlen(mark) ? 0 : strlen(mark);
        wait = s->done == 0;
    }
    skip_spaces(s, raw);
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        int is = begins(s, raw, tags[i][0], last);
        if (is > 0) {
            s->close = tags[i][1];
            s->done += strlen(tags[i][0]);
            s->looked = s->done;
            s->state = TEXT_FILTER_THINKS;
            return true;
        }
        wait = wait || is < 0;
    }
    if (!wait) {
        s->state = TEXT_FILTER_SPEAKS;
        s->looked = s->done;
    }
    return !wait;
}

/* The tag from where it was looked for before; NULL when it has not come. */
static const char *find(const struct text_filter *s, struct str raw, const char *tag)
{
    return raw.len == s->looked
               ? NULL
               : memmem(raw.ptr + s->looked, raw.len - s->looked, tag, strlen(tag));
}

/* The beginning of a tag may already be there. */
static void look_on(struct text_filter *s, struct str raw, size_t longest)
{
    size_t from = raw.len > longest - 1 ? raw.len - (longest - 1) : 0;

    s->looked = from > s->looked ? from : s->looked;
}

static bool think(struct text_filter *s, struct str raw)
{
    const char *end = find(s, raw, s->close);

    if (end == NULL) {
        look_on(s, raw, strlen(s->close));
        return false;
    }
    s->done = (size_t)(end - raw.ptr) + strlen(s->close);
    s->state = TEXT_FILTER_BEGIN;
    return true;
}

/* Some templates put the opening tag into the prompt: only the closing one comes, behind reasoning
 * that looked like an answer. */
static void look_for_lone_tag(struct text_filter *s, struct str raw)
{
    const char *close;
    const char *open;

    if (s->tags_over) {
        return;
    }
    close = find(s, raw, lone_close);
    open = find(s, raw, lone_open);
    if (open != NULL && (close == NULL || open < close)) {
        s->tags_over = true;
    } else if (close != NULL) {
        s->tags_over = true;
        s->done = (size_t)(close - raw.ptr) + strlen(lone_close);
        s->reset = s->reset || s->gave;
        s->gave = false;
        buf_clear(&s->out);
    } else {
        look_on(s, raw, sizeof lone_close - 1);
    }
}

static void speak(struct text_filter *s, struct str raw, bool last)
{
    size_t end = raw.len;

    look_for_lone_tag(s, raw);
    if (!s->gave) {
        skip_spaces(s, raw);
    }
    while (end > s->done && is_space(raw.ptr[end - 1])) {
        end--; /* at the end of all they are left out */
    }
    if (end > s->done) {
        size_t n =
            secrets_pass(s->secrets, (struct str){raw.ptr + s->done, end - s->done}, last, &s->out);
        s->done += n;
        s->gave = s->gave || n > 0;
    }
}

void text_filter_feed(struct text_filter *s, struct str raw, bool last)
{
    bool goes_on = raw.len > 0;

    while (goes_on && s->state != TEXT_FILTER_SPEAKS) {
        goes_on = s->state == TEXT_FILTER_BEGIN ? begin(s, raw, last) : think(s, raw);
    }
    if (raw.len > 0 && s->state == TEXT_FILTER_SPEAKS) {
        speak(s, raw, last);
    }
}
