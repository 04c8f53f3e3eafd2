#include "supervisor/conversation/intent_rules.h"

#include "supervisor/conversation/intent_words.h"

/* Before and after what is wanted. */
static const char BEFORE[] =
    "please|kindly|now|then|so|well|hey|hi|baton|and|,|lets|let us|can you|could you|would you|"
    "will you|can we|could we|i want you to|i want to|i would like to|i would like you to|id like "
    "to|id like you to|you can|you should|we should|we can|just";
static const char BEHIND[] = "please|right now|for now|now|thanks|thank you|for me|then|instead|"
                             "immediately|at once|,|:";
static const char THE[] = "the|this|that|my|our|your|current|whole|entire";
static const char PLAN[] = "plan|job|run|work|it|this|that|everything|all|all of it|task|execution";
static const char YES[] =
    "yes|yep|yeah|yup|y|sure|okay|ok|fine|agreed|i agree|agree|accepted|accept|confirmed|confirm|"
    "i confirm|approved|i approve|approve|do it|go for it|looks good|sounds good|thats fine|thats "
    "ok|that is fine|that is ok|all right|alright|lgtm|of course|absolutely|definitely|correct|go "
    "ahead";
static const char NO[] = "no way|no|nope|nah|n|rejected|i reject|reject|denied|deny|declined|"
                         "decline|refused|refuse|i refuse|disapprove|dont do it|do not do it|dont|"
                         "do not|never";

static bool is_over(struct intent_words *w)
{
    intent_eat_all(w, BEHIND);
    return intent_at_end(w);
}

/* ---- steps ---- */

static bool eat_step(struct intent_words *w, uint32_t *ret)
{
    const uint32_t before = w->i;

    intent_eat_all(w, "the");
    if (intent_eat(w, "last|final")) {
        *ret = INTENT_STEP_LAST;
    } else if (intent_eat(w, "next")) {
        *ret = INTENT_STEP_NEXT;
    } else if (intent_eat(w, "current|this|present")) {
        *ret = INTENT_STEP_THIS;
    } else if (!intent_eat_number(w, ret) || *ret == 0) {
        w->i = before;
        return false;
    }
    return true;
}

static bool eat_range(struct intent_words *w, struct intent_range *ret)
{
    if (!eat_step(w, &ret->from)) {
        return false;
    }
    ret->to = ret->from;
    if (intent_eat(w, "-|to|through|thru|until|till|. .")) {
        intent_eat_all(w, "step|number");
        return eat_step(w, &ret->to) && ret->from < INTENT_STEP_THIS &&
               (ret->to >= ret->from || ret->to == INTENT_STEP_LAST) &&
               ret->to != INTENT_STEP_NEXT && ret->to != INTENT_STEP_THIS;
    }
    return true;
}

/* "step 2", "steps 2, 3 and 5-7", "the second and the third step", "2". *ret_named: it says that
 * these are steps. */
static bool eat_steps(struct intent_words *w, struct intent *s, bool *ret_named)
{
    const char *const NAMES = "steps|step|tasks|task|numbers|number|no|nr|#";

    intent_eat_all(w, "the");
    *ret_named = intent_eat(w, NAMES);
    intent_eat_all(w, "number|no|nr|#");
    do {
        const uint32_t before = w->i > 0 && s->n_ranges > 0 ? w->i - 1 : w->i;
        intent_eat_all(w, "step|task");
        if (s->n_ranges == INTENT_RANGES_MAX || !eat_range(w, &s->ranges[s->n_ranges])) {
            w->i = before; /* "skip step 3, please": the comma belongs to what follows */
            return s->n_ranges > 0;
        }
        s->n_ranges++;
        *ret_named = intent_eat(w, "steps|step|tasks|task") || *ret_named;
    } while (intent_eat(w, ", and|,|and|&|+|as well as"));
    return true;
}

static bool skip_to(struct intent_words *w, struct intent *s)
{
    bool named;
    bool skip = intent_eat(w, "skip|jump");

    if (!skip && !intent_eat(w, "go|move|advance|proceed|continue|carry on|go on|start again")) {
        return false;
    }
    intent_eat_all(w, "ahead|forward|on|straight|directly|right");
    if (!intent_eat(w, skip ? "to|until|till" : "to|with|at|from")) {
        return false;
    }
    s->intent = INTENT_SKIP_TO;
    return eat_steps(w, s, &named) && s->n_ranges == 1 && s->ranges[0].from == s->ranges[0].to &&
           s->ranges[0].from != INTENT_STEP_THIS && (named || skip) && is_over(w);
}

static bool skip(struct intent_words *w, struct intent *s)
{
    bool named = true;
    bool skips = intent_eat(w, "skip over|skip");

    if (!skips && !intent_eat(w, "leave out|omit|leave away|drop")) {
        return false;
    }
    s->intent = INTENT_SKIP;
    if (skips && (is_over(w) || intent_eat(w, "it|this one|that one|this|that|the step"))) {
        s->ranges[0] = (struct intent_range){INTENT_STEP_THIS, INTENT_STEP_THIS};
        s->n_ranges = 1;
        intent_eat_all(w, "step");
        return is_over(w);
    }
    return eat_steps(w, s, &named) && (named || skips) && is_over(w);
}

/* ---- the plan as a whole ---- */

static bool whole_plan(struct intent_words *w)
{
    if (is_over(w)) {
        return true;
    }
    if (intent_eat(w, "it|this|that|everything|all|all of it|all that") && is_over(w)) {
        return true;
    }
    intent_eat_all(w, THE);
    return intent_eat(w, PLAN) && is_over(w);
}

static bool stop(struct intent_words *w, struct intent *s)
{
    s->intent = INTENT_STOP;
    return intent_eat(w, "stop|cancel|abort|quit|give up|kill") && whole_plan(w);
}

static bool pause_it(struct intent_words *w, struct intent *s)
{
    s->intent = INTENT_PAUSE;
    return intent_eat(w, "pause|hold on|hold|suspend|wait a moment|wait a minute|put on hold") &&
           whole_plan(w);
}

static bool resume(struct intent_words *w, struct intent *s)
{
    s->intent = INTENT_RESUME;
    s->only_resumes = intent_eat(w, "resume|unpause");
    if (!s->only_resumes &&
        !intent_eat(w, "continue|go on|carry on|proceed|go ahead|keep going|keep on")) {
        return false;
    }
    intent_eat_all(w, "with");
    return whole_plan(w);
}

static bool status(struct intent_words *w, struct intent *s)
{
    s->intent = INTENT_STATUS;
    return intent_eat(w,
                      "whats the status|what is the status|show me the status|show status|show the "
                      "status|status report|status update|status please|status|where are we now|"
                      "where are we|where are you|how far are we|how far are you|how far is it|how "
                      "is it going|hows it going|whats happening|what is happening|whats going on|"
                      "what is going on|what are you doing|show progress|show me the progress|"
                      "progress|are you done|are we done|is it done|are we there yet|what is left|"
                      "whats left|whats next|what is next|what are you waiting for|any news|any "
                      "progress") &&
           is_over(w);
}

/* ---- yes and no ---- */

/* What follows a comma, or "because". */
static bool eat_comment(struct intent_words *w, struct str text, struct str *ret)
{
    const uint32_t from = w->i;

    if (from == 0 || intent_at_end(w) || !intent_eat(w, ",|;|-|:|because|.")) {
        return false;
    }
    if (intent_at_end(w) || intent_eat(w, "not yet|wait|but|maybe|i mean|or|unless|only if|if")) {
        w->i = from;
        return false;
    }
    *ret = (struct str){text.ptr + w->at[w->i].at, text.len - w->at[w->i].at};
    w->i = w->n;
    return true;
}

/* "yes", "ok, do it", "approve step 2", "no to step 3". */
static bool verdict(struct intent_words *w, const char *words, struct intent *s)
{
    bool named;

    if (!intent_eat(w, words)) {
        return false;
    }
    intent_eat_all(w, ",|to|for");
    intent_eat_all(w, words);
    if (is_over(w) || intent_eat(w, "it|this|that|them|the plan|this plan|the step|this step|the "
                                    "request|this request")) {
        return is_over(w);
    }
    return eat_steps(w, s, &named) && named && s->n_ranges == 1 &&
           s->ranges[0].from == s->ranges[0].to && is_over(w);
}

static bool yes(struct intent_words *w, struct intent *s)
{
    s->intent = INTENT_YES;
    return verdict(w, YES, s);
}

/* "go ahead with step 2", which waits */
static bool yes_to_step(struct intent_words *w, struct intent *s)
{
    bool named;

    s->intent = INTENT_YES;
    return intent_eat(w, "go ahead with|proceed with") && eat_steps(w, s, &named) && named &&
           s->n_ranges == 1 && s->ranges[0].from == s->ranges[0].to && is_over(w);
}

static bool no(struct intent_words *w, struct intent *s)
{
    s->intent = INTENT_NO;
    return verdict(w, NO, s);
}

static bool match(const struct intent_words *words, struct intent *ret)
{
    static bool (*const RULES[])(struct intent_words * w, struct intent * s) = {
        yes_to_step, skip_to, skip, stop, pause_it, resume, yes, no, status};

    for (size_t i = 0; i < sizeof RULES / sizeof RULES[0]; i++) {
        struct intent_words w = *words;
        struct intent s = {.intent = INTENT_UNKNOWN};
        if (RULES[i](&w, &s)) {
            *ret = s;
            return true;
        }
    }
    return false;
}

/* "ok, skip step 2": what was decided before is not what is wanted. "no, the file is wrong": a no
 * with a reason. */
static bool match_after_verdict(struct intent_words *w, struct str text, struct intent *ret)
{
    bool denies = false;
    const uint32_t before = w->i;
    struct intent_words rest;

    if (!intent_eat(w, YES)) {
        if (!intent_eat(w, NO)) {
            return false;
        }
        denies = true;
    }
    rest = *w;
    intent_eat_all(&rest, ",|;|-|:|.");
    /* Without a comma "don't stop" would be "stop". */
    if ((rest.i > w->i || !denies) && !intent_at_end(&rest)) {
        intent_eat_all(&rest, BEFORE);
        if (match(&rest, ret)) {
            ret->only_resumes = ret->only_resumes || denies;
            return ret->intent != (denies ? INTENT_YES : INTENT_NO); /* "no, yes" is neither */
        }
    }
    *ret = (struct intent){.intent = INTENT_NO};
    if (denies && eat_comment(w, text, &ret->rest)) {
        return true;
    }
    w->i = before;
    return false;
}

/* "stop?" and "ok?" ask whether; "could you stop?" asks for it. */
static bool only_asks(struct str text, const struct intent_words *w, enum intent_kind intent)
{
    while (text.len > 0 && memchr(".! \t\r\n", text.ptr[text.len - 1], 6) != NULL) {
        text.len--;
    }
    if (intent == INTENT_STATUS || text.len == 0 || text.ptr[text.len - 1] != '?') {
        return false;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        if (strcmp(w->at[i].text, "you") == 0) {
            return false;
        }
    }
    return true;
}

/* ---- what begins with a word and a colon, or speaks for itself ---- */

static struct str trimmed(struct str s)
{
    while (s.len > 0 && (uint8_t)s.ptr[0] <= ' ') {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && (uint8_t)s.ptr[s.len - 1] <= ' ') {
        s.len--;
    }
    return s;
}

/* "step 2: the red one" */
static bool step_answer(struct intent_words *w, struct intent *s)
{
    const uint32_t before = w->i;

    intent_eat_all(w, "answer to|answer for");
    if (intent_eat(w, "step") && intent_eat_number(w, &s->ranges[0].from) &&
        s->ranges[0].from > 0 && intent_eat(w, ":")) {
        s->ranges[0].to = s->ranges[0].from;
        s->n_ranges = 1;
        return true;
    }
    w->i = before;
    return false;
}

static bool match_prefix(struct str text, struct intent *ret)
{
    struct intent_words w;
    struct str head = {text.ptr, text.len < 40 ? text.len : 40};

    /* Only the beginning is looked at: the rest may be long. A word that is cut means nothing. */
    while (!intent_words_read(head, &w) && head.len > 0) {
        head.len /= 2;
    }
    if (intent_eat(&w, "answer :|my answer :|the answer is :") || step_answer(&w, ret)) {
        ret->intent = INTENT_ANSWER;
    } else if (intent_eat(&w,
                          "new plan :|new goal :|new task :|new :|start over :|new plan|start a "
                          "new plan :|start a new plan")) {
        ret->intent = INTENT_NEW;
        if (!intent_at_end(&w) && strcmp(w.at[w.i - 1].text, ":") != 0) {
            return false; /* "new plan for the garden" is a goal */
        }
    } else if (intent_eat(&w,
                          "just asking|im just asking|i am just asking|only asking|just a question|"
                          "a question :|question :|just wondering|just curious|out of curiosity")) {
        ret->intent = INTENT_ASK;
    } else {
        return false;
    }
    ret->rest =
        w.i == 0
            ? text
            : trimmed((struct str){text.ptr + w.at[w.i - 1].end, text.len - w.at[w.i - 1].end});
    return true;
}

struct intent intent_read(struct str text)
{
    struct intent s = {.intent = INTENT_UNKNOWN};
    struct intent_words w;

    text = trimmed(text);
    if (match_prefix(text, &s)) {
        return s;
    }
    s = (struct intent){.intent = INTENT_UNKNOWN};
    if (!intent_words_read(text, &w) || w.n == 0) {
        return s;
    }
    intent_eat_all(&w, BEFORE);
    if ((match(&w, &s) || match_after_verdict(&w, text, &s)) && !only_asks(text, &w, s.intent)) {
        return s;
    }
    return (struct intent){.intent = INTENT_UNKNOWN};
}
