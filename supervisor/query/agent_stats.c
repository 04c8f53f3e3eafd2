#include "supervisor/query/agent_stats.h"

uint64_t usage_tokens(const struct usage *u)
{
    return u->input_tokens > (uint64_t)INT64_MAX - u->output_tokens
               ? (uint64_t)INT64_MAX
               : u->input_tokens + u->output_tokens;
}

static void add_tokens(struct agent_stats *f, uint64_t tokens)
{
    f->tokens = tokens > (uint64_t)INT64_MAX - f->tokens ? (uint64_t)INT64_MAX : f->tokens + tokens;
}

void agent_stats_step(struct agent_stats *f, bool completed, uint64_t ms, uint64_t errors,
                      uint64_t tokens)
{
    f->steps++;
    f->failed += !completed;
    f->errors += errors;
    f->total_ms += ms;
    f->max_ms = ms > f->max_ms ? ms : f->max_ms;
    add_tokens(f, tokens);
}

static bool is_counted(const struct rec_step_completed *end)
{
    return end->reason != REASON_REUSED &&
           (end->status == STEP_COMPLETED || end->status == STEP_FAILED);
}

/* A failed verification has a record of its own; what follows it is about the same attempt. */
static uint64_t error_of(enum err_class cls)
{
    return cls != CLASS_VERIFICATION_FAILED;
}

void agent_stats_record(struct agent_stats *f, const struct record *rec)
{
    const uint64_t tokens = usage_tokens(&rec->usage);

    if (rec->type == REC_STEP_RETRY || rec->type == REC_VERIFICATION_FAILED) {
        f->errors += rec->type == REC_STEP_RETRY ? error_of(REC(rec, retry)->error_class) : 1;
        add_tokens(f, tokens);
    } else if (rec->type == REC_STEP_COMPLETED && is_counted(REC(rec, step_completed))) {
        const struct rec_step_completed *end = REC(rec, step_completed);
        agent_stats_step(f, end->status == STEP_COMPLETED, end->duration_ms,
                         end->status == STEP_FAILED ? error_of(end->error_class) : 0, tokens);
    } else if (rec->type == REC_STEP_COMPLETED || rec->type == REC_STEP_WAITING) {
        add_tokens(f, tokens);
    }
}

double agent_stats_error_rate(const struct agent_stats *f)
{
    const uint64_t attempts = f->steps - f->failed + f->errors;

    return attempts == 0 ? 0 : (double)f->errors / (double)attempts;
}

uint64_t agent_stats_average_ms(const struct agent_stats *f)
{
    return f->steps == 0 ? 0 : f->total_ms / f->steps;
}
