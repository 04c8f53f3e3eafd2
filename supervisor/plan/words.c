/* Words that no reading ignores: control flow that does not exist, and what people rely on. */
#include "supervisor/plan/words_internal.h"

#include <string.h>

#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"
#include "supervisor/core/plan/template.h"
#include "supervisor/plan/child_read_internal.h"

enum { PLAIN_MAX = 32, NAME_MAX_BYTES = 256 };

/* ---- control flow ---- */

#define WHY_CHOICE                                                                                 \
    "a condition stands in the step that it decides about: when: {\"results.<stepId>.<path>\": "   \
    "{\"gt\": 3}}"
#define WHY_BRANCH                                                                                 \
    "branches stand in a list instead of a step: switch: [{when: {\"results.<stepId>.<path>\": "   \
    "{\"gt\": 3}}, steps: [...]}, {else: true, steps: [...]}]"
#define WHY_EACH                                                                                   \
    "a step is done for each item of a list with forEach: \"{{results.<stepId>.<path>}}\", or a "  \
    "list"
#define WHY_ROUNDS                                                                                 \
    "a step is done again and again with repeat: {until: {\"results.<stepId>.<path>\": {\"gt\": "  \
    "3}}, max: 20, delayMs: 1000}"
#define WHY_TIME                                                                                   \
    "a step that waits is a step of its own: wait: {forMs: 60000}, {until: 2027-01-31T18:00:00Z} " \
    "or {signal: NAME}"
#define WHY_CLOCK                                                                                  \
    "a plan begins by the clock with baton schedule put NAME --cron '0 3 * * *' --plan FILE"
#define WHY_ORDER                                                                                  \
    "ready steps start in the order of the plan; dependsOn and maxConcurrency say which ones run " \
    "at once"
#define WHY_FAILURE                                                                                \
    "onFailure says what follows a failure: abort, skip, continue, retry, replan or ask"
#define WHY_EVENTS "events say what happens: baton events --follow"
#define WHY_AGENTS                                                                                 \
    "policy.agents says which agents the plan may use; their cards say what they can do"
#define WHY_MODEL "the configuration names models; a gate, a planner or a synthesis names an agent"
#define WHY_RESULTS "results are kept by baton retry and baton fork"
#define WHY_INCLUDE "a plan has all its steps; a recipe has inputs"

/* A name of a field, and what is told about it. */
struct known_word {
    const char *word; /* lower case, without - and _ */
    const char *text;
};

static const struct known_word refused[] = {
    {"unless", WHY_CHOICE},
    {"conditions", WHY_CHOICE},
    {"conditional", WHY_CHOICE},
    {"case", WHY_BRANCH},
    {"cases", WHY_BRANCH},
    {"choice", WHY_BRANCH},
    {"choose", WHY_BRANCH},
    {"branch", WHY_BRANCH},
    {"branches", WHY_BRANCH},
    {"then", WHY_BRANCH},
    {"else", WHY_BRANCH},
    {"elseif", WHY_BRANCH},
    {"elif", WHY_BRANCH},
    {"otherwise", WHY_BRANCH},
    {"onlywhen", WHY_CHOICE},
    {"skipif", WHY_CHOICE},
    {"skipwhen", WHY_CHOICE},
    {"for", WHY_EACH},
    {"each", WHY_EACH},
    {"loop", WHY_ROUNDS},
    {"loops", WHY_ROUNDS},
    {"loopover", WHY_EACH},
    {"repeatuntil", WHY_ROUNDS},
    {"while", WHY_ROUNDS},
    {"dowhile", WHY_ROUNDS},
    {"until", WHY_ROUNDS},
    {"map", WHY_EACH},
    {"mapover", WHY_EACH},
    {"withitems", WHY_EACH},
    {"withparam", WHY_EACH},
    {"iterate", WHY_ROUNDS},
    {"iterations", WHY_ROUNDS},
    {"times", WHY_ROUNDS},
    {"matrix", WHY_EACH},
    {"strategy", WHY_EACH},
    {"waitms", WHY_TIME},
    {"waitfor", WHY_TIME},
    {"waituntil", WHY_TIME},
    {"delay", WHY_TIME},
    {"delayms", WHY_TIME},
    {"sleep", WHY_TIME},
    {"sleepms", WHY_TIME},
    {"schedule", WHY_CLOCK},
    {"cron", WHY_CLOCK},
    {"startat", WHY_CLOCK},
    {"runat", WHY_CLOCK},
    {"every", WHY_CLOCK},
    {"interval", WHY_TIME},
    {"trigger", WHY_CLOCK},
    {"triggers", WHY_CLOCK},
    {"parallel", WHY_ORDER},
    {"concurrent", WHY_ORDER},
    {"sequential", WHY_ORDER},
    {"goto", WHY_ORDER},
    {"next", WHY_ORDER},
    {"try", WHY_FAILURE},
    {"catch", WHY_FAILURE},
    {"finally", WHY_FAILURE},
    {"onerror", WHY_FAILURE},
    {"onsuccess", WHY_FAILURE},
    {"rescue", WHY_FAILURE},
    {"compensate", WHY_FAILURE},
    {"rollback", WHY_FAILURE},
    {"include", WHY_INCLUDE},
    {"onevent", WHY_EVENTS},
    {"onprogress", WHY_EVENTS},
    {"onreplan", WHY_EVENTS},
    {"onstepcomplete", WHY_EVENTS},
    {"availabletools", WHY_AGENTS},
    {"builtintools", WHY_AGENTS},
    {"basetools", WHY_AGENTS},
    {"llm", WHY_MODEL},
    {"qualitygatellm", WHY_MODEL},
    {"initialresults", WHY_RESULTS},
    {"initialstate", WHY_RESULTS},
    {"import", WHY_INCLUDE},
    {"extends", WHY_INCLUDE},
    {"subplan", WHY_INCLUDE},
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* The letters and digits of a name, in lower case; "" when they are too many. */
static struct str plain(struct str name, char mem[PLAIN_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < name.len; i++) {
        if (is_letter(name.ptr[i])) {
            if (n == PLAIN_MAX) {
                return (struct str){"", 0};
            }
            mem[n++] = lower(name.ptr[i]);
        }
    }
    return (struct str){mem, n};
}

/* What the n-th entry of the name says. */
static const char *find_word(const struct known_word *words, size_t words_n, struct str name,
                             uint32_t n)
{
    char mem[PLAIN_MAX];
    const struct str word = plain(name, mem);
    for (size_t i = 0; i < words_n; i++) {
        if (str_is(word, words[i].word) && n-- == 0) {
            return words[i].text;
        }
    }
    return NULL;
}

const char *word_refusal(struct str name)
{
    return find_word(refused, sizeof refused / sizeof refused[0], name, 0);
}

/* ---- names of other systems ---- */

static const struct known_word synonyms[] = {
    {"needs", "dependsOn"},
    {"upstream", "dependsOn"},
    {"dependencies", "dependsOn"},
    {"optional", "onFailure: skip"},
    {"allowfailure", "onFailure: skip"},
    {"continueonerror", "onFailure: skip"},
    {"ignoreerrors", "onFailure: skip"},
    {"ignorefailure", "onFailure: skip"},
    {"with", "parameters"},
    {"inputs", "parameters"},
    {"uses", "skill"},
    {"jobs", "steps"},
    {"stages", "steps"},
    {"nodes", "steps"},
    {"for", "forMs"},
    {"ms", "forMs"},
    {"seconds", "forMs"},
    {"duration", "forMs"},
    {"delay", "delayMs"},
    {"delay", "forMs"},
    {"interval", "delayMs"},
    {"sleep", "delayMs"},
    {"sleep", "forMs"},
    {"times", "max"},
    {"count", "max"},
    {"maxiterations", "max"},
    {"iterations", "max"},
};

#define ABOUT_PROGRAMS                                                                             \
    "a program is a command of an exec agent: the configuration has its argv, the step gives "     \
    "agentId, skill (the command's id) and parameters"
#define ABOUT_ENV                                                                                  \
    "the configuration gives an agent its variables (agents: env); values of a step are "          \
    "parameters"

#define ABOUT_POLICY                                                                               \
    "what a policy has stands in the step itself: maxRetries, stepTimeoutMs, onFailure"

static const struct known_word elsewhere[] = {
    {"run", ABOUT_PROGRAMS},     {"script", ABOUT_PROGRAMS}, {"shell", ABOUT_PROGRAMS},
    {"command", ABOUT_PROGRAMS}, {"cmd", ABOUT_PROGRAMS},    {"argv", ABOUT_PROGRAMS},
    {"env", ABOUT_ENV},          {"environment", ABOUT_ENV}, {"policy", ABOUT_POLICY},
};

const char *word_elsewhere(struct str name)
{
    return find_word(elsewhere, sizeof elsewhere / sizeof elsewhere[0], name, 0);
}

const char *word_synonym(struct str name, uint32_t n)
{
    return find_word(synonyms, sizeof synonyms / sizeof synonyms[0], name, n);
}

/* ---- what people rely on ---- */

static bool is_near(struct str word, const char *to)
{
    struct suggest near = suggest_start(word);
    const size_t len = strlen(to);
    if (len < 5) {
        return str_is(word, to);
    }
    near.distance = len < 8 ? 2 : 3; /* one edit; of a long word two */
    suggest_offer(&near, str_from(to));
    return near.best.ptr != NULL;
}

static bool is_relied_on(struct str word)
{
    static const char *const words[] = {
        "signoff",      "approval", "approve",  "approved", "approver", "budget",   "verify",
        "verification", "verified", "verifier", "gate",     "gates",    "effect",   "effects",
        "limit",        "limits",   "max",      "maximum",  "timeout",  "deadline", "critical",
        "confirm",      "unsafe",   "foreach",  "repeat",   "switch",   "when"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (is_near(word, words[i])) {
            return true;
        }
    }
    return false;
}

/* The next word of camelCase, snake_case or kebab-case, in lower case. */
static struct str next_word(struct str name, size_t *at, char mem[PLAIN_MAX])
{
    size_t n = 0;
    while (*at < name.len && !is_letter(name.ptr[*at])) {
        (*at)++;
    }
    for (; *at < name.len && is_letter(name.ptr[*at]) && n < PLAIN_MAX; (*at)++) {
        const char c = name.ptr[*at];
        if (n > 0 && c >= 'A' && c <= 'Z' &&
            !(name.ptr[*at - 1] >= 'A' && name.ptr[*at - 1] <= 'Z')) {
            break;
        }
        mem[n++] = lower(c);
    }
    return (struct str){mem, n};
}

bool word_is_relied_on(struct str name)
{
    char mem[PLAIN_MAX];
    size_t at = 0;
    struct str word;
    if (name.len > NAME_MAX_BYTES) {
        return true; /* what is not read to its end is not ignored */
    }
    while ((word = next_word(name, &at, mem)).len > 0) {
        if (is_relied_on(word)) {
            return true;
        }
    }
    return is_relied_on(plain(name, mem)); /* sign_off, time-out */
}

/* ---- templates of items and rounds ---- */

bool plan_child_has_word(const struct plan_reader *r, struct str text)
{
    const char *dot = memchr(text.ptr, '.', text.len);
    const struct str word = {text.ptr, dot == NULL ? text.len : (size_t)(dot - text.ptr)};
    for (uint32_t i = 0; i < r->n_words; i++) {
        if (str_eq(r->words[i], word)) {
            return true;
        }
    }
    return false;
}

/* The first word between the braces. */
static struct str word_of(struct str template)
{
    size_t from = 2;
    size_t to;
    while (from < template.len && template.ptr[from] == ' ') {
        from++;
    }
    for (to = from; to < template.len && strchr(".}[ ", template.ptr[to]) == NULL;) {
        to++;
    }
    return (struct str){template.ptr + from, to - from};
}

/* {{item}} outside of a forEach, and {{fil.name}} of an item `file`, would be sent as they are. */
static void check_word(struct step_reader *s, const char *field, struct str template)
{
    static const char *const given[][2] = {
        {"item", "forEach"}, {"index", "forEach"}, {"iteration", "repeat"}, {"previous", "repeat"}};
    const struct str word = word_of(template);
    struct suggest near = suggest_start(word);
    const int n = (int)utf8_cut(template.ptr, template.len, 64);
    if (word.len == 0 || plan_child_has_word(s->r, word)) {
        return;
    }
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (str_is(word, given[i][0])) {
            location_report(&s->at, PROBLEM_BAD_TEMPLATE, false, field,
                            "%.*s is known only inside a step with %s", n, template.ptr,
                            given[i][1]);
            return;
        }
    }
    for (uint32_t i = 0; i < s->r->n_words; i++) {
        suggest_offer(&near, s->r->words[i]);
    }
    if (near.best.ptr != NULL) {
        location_report(&s->at, PROBLEM_BAD_TEMPLATE, false, field,
                        "%.*s is no template here; did you mean {{%.*s}}?", n, template.ptr,
                        STR_ARG(near.best));
    }
}

static void check_words(struct step_reader *s, const char *field, struct str text)
{
    struct template_ref t;
    size_t from = 0;
    while (template_next(text, &from, &t)) {
        if (t.kind == TEMPLATE_FOREIGN) {
            check_word(s, field, t.text);
        }
    }
}

void plan_child_check_templates(struct step_reader *s)
{
    struct doc_cursor c = doc_cursor(s->step->parameters);
    struct doc_head head;
    check_words(s, "task", s->step->task);
    while (s->step->parameters.ptr != NULL && doc_next(&c, &head)) {
        if (head.kind == DOC_STR) {
            check_words(s, "parameters", head.str);
        }
    }
}
