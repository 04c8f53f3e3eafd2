/* The few sentences that only the core can make. They live in the core until the next event. When
 * the buffer is full (hundreds of different sentences in one event), a shorter constant sentence is
 * used. */
#include <string.h>

#include "supervisor/core/sched/core_internal.h"

enum { NAMES_SHOWN = 8 };

struct str core_text(struct core *c, const struct str *parts, uint32_t n, struct str instead)
{
    size_t len = 0;
    for (uint32_t i = 0; i < n; i++) {
        len += parts[i].len;
    }
    if (len > CORE_TEXT_BYTES - c->text_used) {
        return instead;
    }
    char *text = c->text + c->text_used;
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (parts[i].len > 0) {
            memcpy(text + at, parts[i].ptr, parts[i].len);
        }
        at += parts[i].len;
    }
    c->text_used += (uint32_t)len;
    return (struct str){text, len};
}

/* At most max bytes, cut at a whole UTF-8 character. */
static struct str cut(struct str s, size_t max)
{
    if (s.len > max) {
        while (max > 0 && ((unsigned char)s.ptr[max] & 0xC0) == 0x80) {
            max--;
        }
        s.len = max;
    }
    return s;
}

struct str core_text_crashed(struct core *c, struct str reason)
{
    if (reason.len == 0) {
        return STR_LIT("Agent crashed");
    }
    const struct str parts[] = {STR_LIT("Agent crashed: "), cut(reason, CORE_REASON_BYTES)};
    return core_text(c, parts, 2, STR_LIT("Agent crashed"));
}

static struct str decimal(char *buf, size_t size, uint64_t v)
{
    size_t at = size;
    do {
        buf[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    return (struct str){buf + at, size - at};
}

struct str core_text_timeout(struct core *c, msec timeout_ms)
{
    char digits[20];
    const struct str parts[] = {STR_LIT("Execution timeout after "),
                                decimal(digits, sizeof digits, timeout_ms), STR_LIT("ms")};
    return core_text(c, parts, 3, STR_LIT("Execution timeout"));
}

struct str core_text_ms(struct core *c, const char *before, msec ms, const char *after)
{
    char digits[20];
    const struct str parts[] = {str_from(before), decimal(digits, sizeof digits, ms),
                                str_from(after)};
    return core_text(c, parts, 3, str_from(before));
}

struct str core_text_pair(struct core *c, const char *before, struct str text)
{
    const struct str parts[] = {str_from(before), cut(text, CORE_TEXT_BYTES / 4)};
    return core_text(c, parts, 2, text);
}

struct str core_text_count(struct core *c, const char *before, uint32_t n, const char *after,
                           struct str text)
{
    char digits[20];
    const struct str parts[] = {str_from(before), decimal(digits, sizeof digits, n),
                                str_from(after), cut(text, CORE_TEXT_BYTES / 4)};
    return core_text(c, parts, 4, text);
}

struct str core_text_pause(struct core *c, msec asked_ms, msec max_ms, struct str text)
{
    char digits[2][20];
    const struct str parts[] = {STR_LIT("The agent asks for a pause of "),
                                decimal(digits[0], sizeof digits[0], asked_ms),
                                STR_LIT(" ms, at most "),
                                decimal(digits[1], sizeof digits[1], max_ms),
                                STR_LIT(" ms (maxPauseMs)"),
                                text.len > 0 ? STR_LIT(": ") : STR_LIT(""),
                                cut(text, CORE_TEXT_BYTES / 4)};
    return core_text(c, parts, 7, text);
}

/* Adds "; there are: a, b": the agents that a plan could name instead. */
static uint32_t add_names(const struct registry *r, uint32_t but, struct str *parts, uint32_t n)
{
    uint32_t named = 0;
    for (uint32_t a = registry_agent_expected(r, 0); a != REGISTRY_NONE && named <= NAMES_SHOWN;
         a = registry_agent_expected(r, a + 1)) {
        const struct agent_view view = registry_agent_view(r, a);
        if (a == but || view.instances == 0 || !view.enabled) {
            continue;
        }
        parts[n++] = named == 0 ? STR_LIT("; there are: ") : STR_LIT(", ");
        parts[n++] = named == NAMES_SHOWN ? STR_LIT("...") : view.id;
        named++;
    }
    return n;
}

struct str core_text_absent(struct core *c, uint32_t agent, msec wait)
{
    const struct agent_view view = registry_agent_view(c->registry, agent);
    const struct str agent_id = view.id;
    char digits[20];
    if (c->text_agent == agent && c->text_wait == wait) {
        return c->text_absent;
    }
    c->text_agent = agent;
    c->text_wait = wait;
    if (view.instances == 0 && view.failure.len > 0) {
        const struct str why[] = {STR_LIT("Agent '"), cut(agent_id, LIMIT_ID_BYTES),
                                  STR_LIT("' is not running: "), view.failure};
        c->text_absent = core_text(c, why, 4, STR_LIT("The agent is not running"));
        return c->text_absent;
    }
    if (view.instances > 0 && view.enabled) {
        const struct str why[] = {STR_LIT("Agent '"), cut(agent_id, LIMIT_ID_BYTES),
                                  STR_LIT("' has registered, but took no step within "),
                                  decimal(digits, sizeof digits, wait),
                                  STR_LIT(" ms: it does not answer at its endpoint, or drains")};
        c->text_absent = core_text(c, why, 5, STR_LIT("The agent took no step in time"));
        return c->text_absent;
    }
    struct str parts[5 + 2 * (NAMES_SHOWN + 1)] = {
        STR_LIT("No instance of agent '"), cut(agent_id, LIMIT_ID_BYTES), STR_LIT("' came within "),
        decimal(digits, sizeof digits, wait), STR_LIT(" ms")};
    const uint32_t n = add_names(c->registry, agent, parts, 5);
    c->text_absent = core_text(c, parts, n, STR_LIT("No instance of the agent came in time"));
    return c->text_absent;
}

struct str core_text_budget(struct core *c, const char *unit, uint64_t spent, uint64_t budget,
                            uint64_t needs)
{
    char digits[3][20];
    const struct str parts[] = {STR_LIT("Budget exceeded: "),
                                decimal(digits[0], sizeof digits[0], spent),
                                STR_LIT(" of "),
                                decimal(digits[1], sizeof digits[1], budget),
                                STR_LIT(" "),
                                str_from(unit),
                                needs > 0 ? STR_LIT(" spent, this step needs ") : STR_LIT(" spent"),
                                decimal(digits[2], sizeof digits[2], needs)};
    return core_text(c, parts, needs > 0 ? 8 : 7, STR_LIT("Budget exceeded"));
}
