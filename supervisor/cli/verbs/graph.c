/* graph: draws a plan of the daemon, with the state of its steps, or a plan file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/arena.h"
#include "protocol/base/map.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/picture/graph.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/children.h"
#include "supervisor/cli/view/condition.h"
#include "supervisor/cli/view/screen.h"
#include "supervisor/plan/flow/child.h"
#include "supervisor/plan/read.h"

enum { PROBLEMS_MAX = 200, DETAIL_MAX = 160 };

/* What is drawn; all memory is the arena's. */
struct drawn {
    struct graph graph;
    struct arena arena;
    const char *plan_id; /* "" = a file */
};

static const char *keep(struct arena *arena, const char *text)
{
    const char *copy = arena_str(arena, str_from(text)).ptr;

    return copy != NULL ? copy : "";
}

static enum cli_exit no_memory(void)
{
    cli_error("out of memory");
    return CLI_INTERNAL;
}

/* Each step follows the one before it. */
static bool make_chain(struct drawn *d, struct graph_step *steps)
{
    uint32_t *deps = arena_alloc(&d->arena, (d->graph.n + 1) * sizeof *deps);

    for (uint32_t i = 1; deps != NULL && i < d->graph.n; i++) {
        deps[i] = i - 1;
        steps[i].deps = &deps[i];
        steps[i].n_deps = 1;
    }
    return deps != NULL;
}

/* ---- a file ---- */

/* In words; NULL = it has none. *ret is false when out of memory. */
static const char *keep_condition(struct arena *arena, const cJSON *when, bool on_failure,
                                  bool *ret)
{
    struct buf words;
    const char *kept = NULL;

    buf_init(&words, LIMIT_CONTROL_BYTES);
    buf_add_cstr(&words, on_failure ? "a step before it failed" : "");
    buf_add_cstr(&words, on_failure && when != NULL ? ", and " : "");
    condition_words(when, &words);
    if (words.len > 0) {
        kept = arena_str(arena, str_from(buf_cstr(&words))).ptr;
        *ret = *ret && kept != NULL;
    }
    buf_done(&words);
    return kept;
}

/* NULL without one, or when out of memory. Free with cJSON_Delete. */
static cJSON *tree_of(struct doc doc)
{
    struct buf json;
    cJSON *tree = NULL;

    buf_init(&json, LIMIT_CONTROL_BYTES);
    if (doc.ptr != NULL && doc_to_json(doc, false, &json, NULL) == BT_OK) {
        tree = json_tree(buf_cstr(&json));
    }
    buf_done(&json);
    return tree;
}

static const char *condition_of(struct arena *arena, const struct plan_step *s, bool *ret)
{
    cJSON *when = tree_of(s->rules->when);
    const char *kept = keep_condition(arena, when, s->rules->policy.run_if == RUN_IF_FAILURE, ret);

    cJSON_Delete(when);
    return kept;
}

/* "forEach logs.entries: files", "repeat until poll.state = done, at most 20", "plan". */
static void put_child(const struct child_step *how, const struct plan_step *s, struct buf *out)
{
    const struct loop_policy loop = child_loop(s->rules->child);
    cJSON *list = tree_of(how->list);
    cJSON *condition = tree_of(how->condition);
    cJSON *body = tree_of(how->body);
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(body, "steps");
    const int n = cJSON_GetArraySize(steps);
    char text[DETAIL_MAX];

    buf_add_cstr(out, child_kind_name(how->kind));
    if (cJSON_IsString(list)) {
        children_task(text, sizeof text, list->valuestring); /* "<logs.entries>" */
        text[strcspn(text, ">")] = 0;
        buf_printf(out, " %s", text + (text[0] == '<'));
    } else if (cJSON_IsArray(list)) {
        buf_printf(out, " of %d", cJSON_GetArraySize(list));
    }
    if (how->kind == CHILD_OF_LOOP) {
        buf_add_cstr(out, how->is_while ? " while " : " until ");
        condition_words(condition, out);
        buf_printf(out, ", at most %u", loop.max);
    }
    if (n == 1) {
        buf_printf(out, ": %s", json_text(steps->child, "agentId", "a step"));
    } else if (n > 1) {
        buf_printf(out, ": %d steps", n);
    }
    cJSON_Delete(list);
    cJSON_Delete(condition);
    cJSON_Delete(body);
}

/* Who does the step of a file. */
static const char *doer_of(struct arena *arena, const struct plan_step *s)
{
    struct child_step how;
    struct buf text;
    const char *kept;

    if (s->type == STEP_TYPE_REVIEW) {
        return "a person";
    }
    if (!child_step_read(s->rules->child, &how)) {
        return arena_str(arena, s->wait != NULL       ? s->task
                                : s->agent_id.len > 0 ? s->agent_id
                                                      : s->skill)
            .ptr;
    }
    buf_init(&text, LIMIT_CONTROL_BYTES);
    put_child(&how, s, &text);
    kept = arena_str(arena, str_from(buf_cstr(&text))).ptr;
    buf_done(&text);
    return kept;
}

/* "shop, undone by bank" */
static const char *with_undo(struct arena *arena, const struct plan_step *s)
{
    const struct str agent = doc_string(doc_get(s->rules->compensate, STR_LIT("agentId")));
    const struct str undo =
        agent.len > 0 ? agent : doc_string(doc_get(s->rules->compensate, STR_LIT("skill")));
    const char *who = doer_of(arena, s);
    char detail[2 * DETAIL_MAX];

    (void)snprintf(detail, sizeof detail, "%s%s%.*s", who != NULL ? who : "",
                   undo.len > 0 ? ", undone by " : "", STR_ARG(undo));
    return s->rules->compensate.ptr == NULL || who == NULL ? who
                                                           : arena_str(arena, str_from(detail)).ptr;
}

static enum cli_exit take_plan(struct drawn *d, const struct plan *plan)
{
    struct graph_step *steps = arena_alloc(&d->arena, (plan->n_steps + 1) * sizeof *steps);

    if (steps == NULL) {
        return no_memory();
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct plan_step *s = &plan->steps[i];
        bool ok = true;
        steps[i] = (struct graph_step){.id = arena_str(&d->arena, s->step_id).ptr,
                                       .detail = with_undo(&d->arena, s),
                                       .when = condition_of(&d->arena, s, &ok),
                                       .status = "",
                                       .deps = plan->deps + s->deps_at,
                                       .n_deps = s->deps_n};
        if (steps[i].id == NULL || steps[i].detail == NULL || !ok) {
            return no_memory();
        }
    }
    d->graph.steps = steps;
    d->graph.n = plan->n_steps;
    d->graph.title = arena_str(&d->arena, plan->goal).ptr;
    return d->graph.title != NULL && (!plan->chain || make_chain(d, steps)) ? CLI_OK : no_memory();
}

static enum cli_exit from_file(struct cli *cli, const char *path, struct drawn *d)
{
    struct plan_defaults defaults = plan_defaults_builtin();
    struct problem *list = calloc(PROBLEMS_MAX, sizeof *list);
    struct problems problems = {.at = list, .cap = PROBLEMS_MAX};
    char *json = cli_read_plan(cli, path);
    struct plan *plan = NULL;
    struct buf doc;
    struct bt_error err;
    enum bt_code code;
    enum cli_exit exit_code = CLI_USAGE;

    buf_init(&doc, LIMIT_CONTROL_BYTES);
    if (json == NULL || list == NULL) {
        exit_code = json == NULL ? CLI_USAGE : no_memory();
        goto out;
    }
    code = json_to_doc(str_from(json), NULL, &doc, &err);
    if (code == BT_OK) {
        const struct plan_request request = {
            .plan = doc_from_buf(&doc), .defaults = &defaults, .lenient = true};
        code = plan_read_request(&request, &d->arena, &plan, &problems, NULL, &err);
    }
    if (code == BT_OK) {
        exit_code = take_plan(d, plan);
    } else {
        cli_print_found(cli, &problems, false);
        if (problems.errors == 0) {
            cli_error("%s: %s", path, err.msg);
        }
        exit_code = cli_exit_of(code);
    }
out:
    buf_done(&doc);
    cJSON_free(json);
    free(list);
    return exit_code;
}

/* ---- a plan of the daemon ---- */

static bool is_superseded(const cJSON *step)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(step, "superseded"));
}

static const char *detail_of(struct arena *arena, const cJSON *step)
{
    const bool review = strcmp(json_text(step, "type", ""), "human_review") == 0;
    const cJSON *children = cJSON_GetObjectItemCaseSensitive(step, "children");
    const char *kind = json_text(children, "kind", "");
    const bool waits = strcmp(json_text(step, "type", ""), "wait") == 0;
    const char *agent = review  ? "a person"
                        : waits ? json_text(step, "task", "")
                                : json_text(step, "agentId", kind);
    const char *wait =
        json_text(cJSON_GetObjectItemCaseSensitive(step, "waiting"), "reviewId", NULL);
    const cJSON *undo = cJSON_GetObjectItemCaseSensitive(step, "compensate");
    char detail[2 * DETAIL_MAX];
    char done[DETAIL_MAX] = "";
    char ms[24] = "";

    if (cJSON_GetObjectItemCaseSensitive(step, "durationMs") != NULL) {
        cli_format_ms(json_number(step, "durationMs"), ms, sizeof ms);
    }
    children_words(kind, children, done, sizeof done);
    (void)snprintf(detail, sizeof detail, "%s%s%s%s%s%s%s%s", agent, done[0] != 0 ? ": " : "", done,
                   agent[0] != 0 && ms[0] != 0 ? ", " : "", ms,
                   wait != NULL && !review ? ", a person decides" : "",
                   undo != NULL ? ", undone by " : "", json_text(undo, "agentId", ""));
    return keep(arena, detail);
}

/* The dependencies that are drawn: those of the steps that are. */
static bool take_deps(struct drawn *d, struct graph_step *step, const cJSON *names,
                      const struct map *by_id)
{
    uint32_t *deps = arena_alloc(&d->arena, ((size_t)cJSON_GetArraySize(names) + 1) * sizeof *deps);
    const cJSON *name;

    cJSON_ArrayForEach(name, names)
    {
        const uint32_t at = deps != NULL && cJSON_IsString(name)
                                ? map_get(by_id, str_from(name->valuestring))
                                : MAP_NONE;
        if (at != MAP_NONE) {
            deps[step->n_deps++] = at;
        }
    }
    step->deps = deps;
    return deps != NULL;
}

static const char *condition_of_view(struct arena *arena, const cJSON *step, bool *ret)
{
    return keep_condition(arena, cJSON_GetObjectItemCaseSensitive(step, "when"),
                          strcmp(json_text(step, "runIf", ""), "failure") == 0, ret);
}

static enum cli_exit add_chain(struct cli *cli, struct drawn *d, const cJSON *view,
                               struct graph_step *steps)
{
    bool chain = false;
    const enum cli_exit code = cli_plan_chain(cli, view, &chain);

    return code != CLI_OK || !chain || make_chain(d, steps) ? code : no_memory();
}

static enum cli_exit take_view(struct cli *cli, struct drawn *d, const cJSON *view,
                               uint32_t *ret_left_out)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(view, "steps");
    struct graph_step *steps =
        arena_alloc(&d->arena, ((size_t)cJSON_GetArraySize(list) + 1) * sizeof *steps);
    struct map by_id = {0};
    bool ok = steps != NULL;
    uint32_t n = 0;
    const cJSON *s;

    cJSON_ArrayForEach(s, list)
    {
        if (is_superseded(s)) {
            ++*ret_left_out;
        } else if (ok) {
            steps[n] = (struct graph_step){.id = keep(&d->arena, json_text(s, "stepId", "")),
                                           .detail = detail_of(&d->arena, s),
                                           .when = condition_of_view(&d->arena, s, &ok),
                                           .status = keep(&d->arena, json_text(s, "status", ""))};
            ok = ok && map_put(&by_id, str_from(steps[n].id), n) == BT_OK;
            n++;
        }
    }
    n = 0;
    cJSON_ArrayForEach(s, list)
    {
        if (ok && !is_superseded(s)) {
            ok =
                take_deps(d, &steps[n++], cJSON_GetObjectItemCaseSensitive(s, "dependsOn"), &by_id);
        }
    }
    map_done(&by_id);
    d->graph.steps = steps;
    d->graph.n = n;
    d->graph.title = keep(&d->arena, json_text(view, "query", ""));
    d->plan_id = keep(&d->arena, json_text(view, "planId", ""));
    return ok ? add_chain(cli, d, view, steps) : no_memory();
}

static enum cli_exit from_daemon(struct cli *cli, const char *plan_id, struct drawn *d)
{
    cJSON *view = NULL;
    uint32_t left_out = 0;
    enum cli_exit code = cli_plan_view(cli, plan_id, &view);

    if (code == CLI_OK) {
        code = take_view(cli, d, view, &left_out);
    }
    if (code == CLI_OK && left_out > 0) {
        cli_note("not drawn: %u step%s that a later revision does without\n", left_out,
                 left_out == 1 ? "" : "s");
    }
    cJSON_Delete(view);
    return code;
}

/* ---- output ---- */

static void print_json(const struct drawn *d)
{
    cJSON *json = cli_fields("planId", d->plan_id[0] != 0 ? d->plan_id : NULL);
    cJSON *steps = cJSON_AddArrayToObject(json, "steps");

    for (uint32_t i = 0; i < d->graph.n; i++) {
        const struct graph_step *s = &d->graph.steps[i];
        cJSON *step = cli_fields("stepId", s->id);
        cJSON *deps = cJSON_AddArrayToObject(step, "dependsOn");
        for (uint32_t k = 0; k < s->n_deps; k++) {
            (void)cJSON_AddItemToArray(deps, cJSON_CreateString(d->graph.steps[s->deps[k]].id));
        }
        if (s->status[0] != 0) {
            (void)cJSON_AddStringToObject(step, "status", s->status);
        }
        if (s->when != NULL) {
            (void)cJSON_AddStringToObject(step, "if", s->when);
        }
        (void)cJSON_AddItemToArray(steps, step);
    }
    cli_print_json(json);
    cJSON_Delete(json);
}

static enum cli_exit draw(struct cli *cli, const char *form, struct drawn *d)
{
    const struct look look = screen_look(cli);
    struct buf out;
    struct bt_error err;
    enum bt_code code;
    enum cli_exit exit_code = CLI_OK;

    buf_init(&out, SCREEN_BYTES_MAX);
    if (strcmp(form, "dot") == 0) {
        code = graph_dot(&d->graph, &out, &err);
    } else if (strcmp(form, "mermaid") == 0) {
        code = graph_mermaid(&d->graph, &out, &err);
    } else if (strcmp(form, "svg") == 0) {
        code = graph_svg(&d->graph, &d->arena, &out, &err);
    } else {
        code = graph_text(&d->graph, &look, &d->arena, &out, &err);
    }
    if (code == BT_OK) {
        screen_write(&out);
    } else {
        exit_code = cli_fail(&err);
    }
    buf_done(&out);
    return exit_code;
}

enum cli_exit verb_graph(struct cli *cli)
{
    static const char *const forms[] = {"text", "dot", "svg", "mermaid", NULL};
    const char *name = cli->argv[0];
    const char *form = screen_form(cli, forms);
    struct drawn d = {.plan_id = ""};
    enum cli_exit code;

    code = strcmp(name, "-") == 0 || recipes_is_file(name) || access(name, F_OK) == 0
               ? from_file(cli, name, &d)
               : from_daemon(cli, name, &d);
    if (code == CLI_OK && cli->json) {
        print_json(&d);
    } else if (code == CLI_OK && d.graph.n == 0) {
        cli_note("the plan has no steps yet\n");
    } else if (code == CLI_OK) {
        code = draw(cli, form, &d);
    }
    arena_done(&d.arena);
    return code;
}
