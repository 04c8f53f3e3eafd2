#include "supervisor/keyword/abilities.h"

#include "protocol/base/utf8.h"
#include "protocol/wire/msg.h"
#include "supervisor/keyword/verbs.h"

enum { AGENTS_MAX = 64, SKILLS_MAX = 32, WORDS_SHOWN = 60 };

static void put_words(struct buf *out, const struct msg_skill *skill)
{
    const struct str words = skill->name.len > 0 ? skill->name : skill->description;
    if (words.len > 0) {
        const size_t n = utf8_cut(words.ptr, words.len, WORDS_SHOWN);
        buf_printf(out, " (%.*s%s)", (int)n, words.ptr, n < words.len ? "..." : "");
    }
}

/* False when the agent has nothing to offer. */
static bool put_agent(const struct agent_view *agent, bool words, struct buf *out)
{
    uint32_t n = 0;
    const uint32_t all = agent->enabled && agent->card != NULL ? agent->card->skills_n : 0;
    for (uint32_t s = 0; s < all; s++) {
        const struct msg_skill *skill = &agent->card->skills[s];
        if (verbs_is_question(skill->id)) {
            continue;
        }
        if (n == SKILLS_MAX) {
            buf_add_cstr(out, ", ...");
            break;
        }
        if (n == 0) {
            buf_add_str(out, agent->id);
        }
        buf_add_cstr(out, n > 0 ? ", " : words ? ": " : " (");
        buf_add_str(out, skill->id);
        if (words) {
            put_words(out, skill);
        }
        n++;
    }
    buf_add_cstr(out, n > 0 && !words ? ")" : "");
    return n > 0;
}

/* One after the other while they fit, then "...". */
static void put_all(const struct registry *registry, size_t cap, bool words, struct buf *out)
{
    const char *between = words ? "; " : ", ";
    const size_t from = out->len;
    uint32_t n = 0;
    for (uint32_t a = 0; a < registry_agents(registry) && n <= AGENTS_MAX; a++) {
        const struct agent_view agent = registry_agent_view(registry, a);
        const size_t before = out->len;
        buf_add_cstr(out, n > 0 ? between : "");
        if (!put_agent(&agent, words, out)) {
            buf_truncate(out, before);
            continue;
        }
        n++;
        if (out->len - from + 5 > cap || n > AGENTS_MAX) {
            buf_truncate(out, before);
            buf_add_cstr(out, n > 1 ? between : "");
            buf_add_cstr(out, "...");
            return;
        }
    }
}

void abilities_put(const struct registry *registry, size_t cap, struct buf *out)
{
    put_all(registry, cap, true, out);
}

void abilities_put_short(const struct registry *registry, size_t cap, struct buf *out)
{
    put_all(registry, cap, false, out);
}
