/* GET /metrics: counters and gauges of the daemon (supervisor.stats), counts of events (fold.c),
 * and those of this program. */
#include <inttypes.h>
#include <stdio.h>

#include "supervisor/gateway/http.h"
#include "supervisor/gateway/telemetry/telemetry.h"
#include "supervisor/gateway/watch.h"
#include "supervisor/gateway/webhook/webhook.h"

enum { STATS_MS = 2000 };

struct metric {
    const char *field, *name, *type, *help;
    double scale;
};

static const struct metric daemon_metrics[] = {
    {"plansOpen", "baton_plans_open", "gauge", "Plans that have not ended.", 1},
    {"plansWaiting", "baton_plans_waiting", "gauge", "Plans whose open work waits for people.", 1},
    {"reviewsOpen", "baton_reviews_open", "gauge", "Reviews that nobody has decided.", 1},
    {"queued", "baton_steps_queued", "gauge", "Steps that wait for an agent.", 1},
    {"inFlight", "baton_steps_in_flight", "gauge", "Attempts and questions that are out.", 1},
    {"stepsDispatched", "baton_steps_dispatched_total", "counter",
     "Attempts sent to agents since the daemon started.", 1},
    {"stepsRetried", "baton_step_retries_total", "counter",
     "Attempts that failed and were followed by another one.", 1},
    {"resultsRejected", "baton_results_rejected_total", "counter",
     "Results that came too late or from the wrong instance.", 1},
    {"fallbacks", "baton_fallbacks_total", "counter", "Fallbacks used.", 1},
    {"replans", "baton_replans_total", "counter", "Times that the rest of a plan was made again.",
     1},
    {"breakersOpened", "baton_breakers_opened_total", "counter",
     "Times that a circuit breaker opened.", 1},
    {"requests", "baton_requests_total", "counter", "Requests that the daemon took.", 1},
    {"refusedBusy", "baton_requests_refused_total", "counter",
     "Requests that were refused because too many waited.", 1},
    {"published", "baton_events_published_total", "counter", "Events published.", 1},
    {"records", "baton_journal_records_total", "counter", "Records written to the journal.", 1},
    {"commits", "baton_journal_commits_total", "counter", "Commits of the journal.", 1},
    {"commitUs", "baton_journal_commit_seconds_total", "counter", "Time spent in commits.", 1e-6},
    {"journalBytes", "baton_journal_size_bytes", "gauge", "Size of the journal's file.", 1},
    {"turns", "baton_cycles_total", "counter", "Cycles of the daemon's loop.", 1},
    {"longestCycleUs", "baton_cycle_longest_seconds", "gauge",
     "Processor time of the longest cycle since the daemon started.", 1e-6},
    {"rssBytes", "baton_resident_memory_bytes", "gauge", "Memory of the daemon.", 1},
};

static const struct metric agent_metrics[] = {
    {"instances", "baton_agent_instances", "gauge", "Instances whose lease is valid.", 1},
    {"capacity", "baton_agent_capacity", "gauge", "Attempts that the instances take at once.", 1},
    {"inFlight", "baton_agent_in_flight", "gauge", "Attempts that are out at the agent.", 1},
    {"queued", "baton_agent_queued", "gauge", "Steps that wait for the agent.", 1},
    {"steps", "baton_agent_attempts_total", "counter", "Attempts that the agent answered.", 1},
    {"errors", "baton_agent_errors_total", "counter", "Attempts that failed at the agent.", 1},
};

static void put_value(struct buf *out, struct doc d, double scale)
{
    const struct doc_head head = doc_head(d);

    if (scale == 1) {
        buf_printf(out, " %" PRIu64 "\n", head.kind == DOC_UINT ? head.u : 0);
    } else {
        buf_printf(out, " %.6f\n", head.kind == DOC_UINT ? (double)head.u * scale : 0);
    }
}

static void put_agents(struct buf *out, struct doc agents)
{
    const struct doc_head head = doc_head(agents);

    for (size_t m = 0; m < sizeof agent_metrics / sizeof agent_metrics[0]; m++) {
        const struct metric *x = &agent_metrics[m];
        text_family(out, x->name, x->type, x->help);
        for (uint32_t i = 0; head.kind == DOC_ARRAY && i < head.n; i++) {
            const struct doc a = doc_at(agents, i);
            buf_add_cstr(out, x->name);
            text_label(out, "agent", doc_string(doc_get(a, STR_LIT("agentId"))), true);
            buf_add_byte(out, '}');
            put_value(out, doc_get(a, str_from(x->field)), x->scale);
        }
    }
    text_family(out, "baton_agent_breaker_open", "gauge",
                "1 while the circuit breaker of the agent keeps work away.");
    for (uint32_t i = 0; head.kind == DOC_ARRAY && i < head.n; i++) {
        const struct doc a = doc_at(agents, i);
        const struct str breaker = doc_string(doc_get(a, STR_LIT("breaker")));
        buf_add_cstr(out, "baton_agent_breaker_open");
        text_label(out, "agent", doc_string(doc_get(a, STR_LIT("agentId"))), true);
        buf_printf(out, "} %d\n", breaker.len > 0 && !str_is(breaker, "closed"));
    }
}

static void put_daemon(struct buf *out, struct doc stats)
{
    static const struct {
        const char *field, *over;
    } cycles[] = {
        {"cyclesOver5Ms", "0.005"}, {"cyclesOver20Ms", "0.02"}, {"cyclesOver100Ms", "0.1"}};

    for (size_t i = 0; i < sizeof daemon_metrics / sizeof daemon_metrics[0]; i++) {
        const struct metric *m = &daemon_metrics[i];
        text_family(out, m->name, m->type, m->help);
        buf_add_cstr(out, m->name);
        put_value(out, doc_get(stats, str_from(m->field)), m->scale);
    }
    text_family(out, "baton_slow_cycles_total", "counter",
                "Cycles that took more processor time than `over`, in seconds.");
    for (size_t i = 0; i < sizeof cycles / sizeof cycles[0]; i++) {
        buf_printf(out, "baton_slow_cycles_total{over=\"%s\"}", cycles[i].over);
        put_value(out, doc_get(stats, str_from(cycles[i].field)), 1);
    }
    put_agents(out, doc_get(stats, STR_LIT("agents")));
}

static uint64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    if (f != NULL) {
        if (fscanf(f, "%*u %lu", &pages) != 1) {
            pages = 0;
        }
        (void)fclose(f);
    }
    return (uint64_t)pages * 4096;
}

static void put_webhooks(const struct webhooks *w, struct buf *out)
{
    static const struct {
        const char *name, *type, *help;
    } families[] = {
        {"baton_webhook_delivered_total", "counter",
         "Requests that the receiver has taken since the gateway started."},
        {"baton_webhook_failed_total", "counter",
         "Requests that it has not taken since the gateway started."},
        {"baton_webhook_parked", "gauge", "1 while nothing is sent, after a day of failures."},
        {"baton_webhook_lag_events", "gauge",
         "Events of the journal that the webhook is behind the last one."}};

    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        struct webhook_counts c;
        uint32_t at = 0;
        text_family(out, families[f].name, families[f].type, families[f].help);
        while (webhooks_counts(w, &at, &c)) {
            const uint64_t values[] = {c.delivered, c.failed, c.parked, c.lag};
            buf_add_cstr(out, families[f].name);
            text_label(out, "webhook", str_from(c.name), true);
            buf_printf(out, "} %" PRIu64 "\n", values[f]);
        }
    }
}

static void put_own(const struct http *h, struct buf *out)
{
    const struct server *s = h->s;
    const struct telemetry *t = s->parts.telemetry;

    text_family(out, "baton_gateway_requests_total", "counter",
                "Requests over HTTP by the class of their status.");
    for (int i = 2; i < 6; i++) {
        buf_printf(out, "baton_gateway_requests_total{code=\"%dxx\"} %" PRIu64 "\n", i,
                   s->counts.requests[i]);
    }
    text_family(out, "baton_gateway_connections", "gauge", "Connections over HTTP.");
    buf_printf(out, "baton_gateway_connections %" PRIu32 "\n", s->conns_n);
    text_family(out, "baton_gateway_resident_memory_bytes", "gauge", "Memory of the gateway.");
    buf_printf(out, "baton_gateway_resident_memory_bytes %" PRIu64 "\n", resident_bytes());
    text_family(out, "baton_gateway_stream_wakes_total", "counter",
                "Times that a stream of events had something to send.");
    buf_printf(out, "baton_gateway_stream_wakes_total %" PRIu64 "\n", s->counts.wakes);
    put_webhooks(s->parts.hooks, out);
    if (t->traces != NULL) {
        const struct traces_counts n = traces_counts(t->traces);
        text_family(out, "baton_otlp_spans_total", "counter", "Spans by what became of them.");
        buf_printf(out,
                   "baton_otlp_spans_total{result=\"exported\"} %" PRIu64
                   "\nbaton_otlp_spans_total{result=\"dropped\"} %" PRIu64 "\n",
                   n.exported, n.dropped);
        text_family(out, "baton_otlp_failures_total", "counter",
                    "Batches that the collector did not take at the first time.");
        buf_printf(out, "baton_otlp_failures_total %" PRIu64 "\n", n.failures);
    }
}

static void on_stats(void *self, const struct reply *reply)
{
    struct http *h = self;
    struct telemetry *t = h->s->parts.telemetry;
    const bool away = !reply->ok && reply->problem.code != BT_UNAUTHORIZED;

    h->call = NULL;
    if (!reply->ok && !(away && caller_is_proved(h->caller))) {
        http_problem(h, &reply->problem);
        http_ready(h);
        return;
    }
    if (t->fold == NULL && (t->fold = fold_new()) != NULL) {
        watch_add(t->watch, fold_event, t->fold);
    }
    h->status = 200;
    h->type = "text/plain; version=0.0.4; charset=utf-8";
    h->state = HTTP_READY;
    text_family(&h->out, "baton_up", "gauge", "1 when the daemon answers the gateway.");
    buf_printf(&h->out, "baton_up %d\n", reply->ok);
    text_family(&h->out, "baton_build_info", "gauge", "The version of the gateway.");
    buf_add_cstr(&h->out, "baton_build_info{version=\"" BATON_VERSION "\"} 1\n");
    if (reply->ok) {
        put_daemon(&h->out, reply->body);
    }
    if (t->fold != NULL) {
        fold_write(t->fold, &h->out);
    }
    put_own(h, &h->out);
    if (buf_check(&h->out, NULL) != BT_OK) {
        http_refuse(h, BT_NOMEM, 503, "", "out of memory for the metrics");
    }
    http_ready(h);
}

void telemetry_serve_metrics(struct http *h)
{
    struct call_spec spec = {.type = MSG_supervisor_stats,
                             .answer = MSG_supervisor_stats_ok,
                             .reads = true,
                             .within_ms = STATS_MS,
                             .done = on_stats,
                             .self = h};
    struct bt_error err;
    struct buf fields;

    buf_init(&fields, 16);
    doc_put_map(&fields, 0);
    spec.fields = doc_from_buf(&fields);
    if (caller_call(h->caller, &spec, h->s->now, &h->call, &err) == BT_OK) {
        http_wait(h);
    } else {
        http_refuse(h, err.code, 0, "", err.msg);
    }
    buf_done(&fields);
}
