/* reviews, review show, decide, approve, reject: decisions of a person. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/diff.h"
#include "supervisor/cli/verbs/follow.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/review.h"

enum { ID_MAX = CLI_REVIEW_ID };

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static void print_buf(struct buf *text)
{
    (void)fputs(buf_cstr(text), stdout);
    buf_done(text);
}

/* The answer, or NULL: the caller goes on without it. */
static cJSON *ask_quietly(struct cli *cli, const char *type, cJSON *fields)
{
    char *text = cJSON_PrintUnformatted(fields);
    char *json = NULL;
    struct bt_error err;
    cJSON *ret = NULL;

    if (cli->client != NULL && bt_client_call(cli->client, type, text, &json, &err) == BT_OK) {
        ret = json_tree(json);
    }
    cJSON_Delete(fields);
    cJSON_free(text);
    bt_free(json);
    return ret;
}

/* review.get of a review that a list has without its values or steps; NULL when the list has all.
 */
static cJSON *whole(struct cli *cli, const cJSON *r)
{
    const bool partly =
        get(r, "parametersLen") != NULL || (get(r, "stepCount") != NULL && get(r, "steps") == NULL);

    return partly ? ask_quietly(cli, "review.get",
                                cli_fields("reviewId", json_text(r, "reviewId", "")))
                  : NULL;
}

/* Appends a review of review.list, cut, and how to see all of it. */
static void review_brief(struct cli *cli, const cJSON *review, struct buf *out)
{
    cJSON *answer = whole(cli, review);
    const cJSON *all = get(answer, "review");
    const size_t from = out->len;

    review_text(all != NULL ? all : review, REVIEW_CUT, out);
    if (strstr(buf_cstr(out) + from, "… ") != NULL) {
        buf_printf(out, "    %-10s baton review show %s\n", "all of it",
                   json_text(review, "reviewId", ""));
    }
    cJSON_Delete(answer);
}

int cli_reviews_open(struct cli *cli, const char *plan_id, char ret_id[CLI_REVIEW_ID],
                     struct buf *out)
{
    cJSON *answer = ask_quietly(cli, "review.list", cli_fields("planId", plan_id));
    const cJSON *r;
    int n = 0;

    ret_id[0] = 0;
    cJSON_ArrayForEach(r, get(answer, "reviews"))
    {
        (void)snprintf(ret_id, CLI_REVIEW_ID, "%s", json_text(r, "reviewId", ""));
        review_brief(cli, r, out);
        n++;
    }
    cJSON_Delete(answer);
    return n;
}

/* ---- reviews --all ---- */

/* The decisions of a plan, or of all: from the events, page by page. */
static enum cli_exit add_decisions(struct cli *cli, const char *plan, cJSON *list)
{
    double seq = 1;
    double last = 1;
    enum cli_exit code = CLI_OK;

    while (code == CLI_OK && seq <= last) {
        cJSON *fields = cli_fields("planId", plan);
        cJSON *types = cJSON_AddArrayToObject(fields, "types");
        cJSON *page = NULL;
        cJSON *events;
        (void)cJSON_AddItemToArray(types, cJSON_CreateString("review_decided"));
        (void)cJSON_AddItemToArray(types, cJSON_CreateString("review_voided"));
        (void)cJSON_AddNumberToObject(fields, "fromSeq", seq);
        code = cli_call(cli, "events.read", fields, &page);
        events = cJSON_GetObjectItemCaseSensitive(page, "events");
        while (cJSON_GetArraySize(events) > 0) {
            cJSON *event = cJSON_DetachItemFromArray(events, 0);
            (void)cJSON_AddStringToObject(event, "decidedAt", json_text(event, "timestamp", ""));
            if (strcmp(json_text(event, "type", ""), "review_voided") == 0) {
                (void)cJSON_AddStringToObject(event, "decision", "void");
                (void)cJSON_AddStringToObject(event, "kind", "plan");
            }
            (void)cJSON_AddItemToArray(list, event);
        }
        seq = json_number(page, "nextSeq");
        last = json_number(page, "lastSeq");
        cJSON_Delete(page);
    }
    return code;
}

static enum cli_exit print_all(struct cli *cli, const char *plan, cJSON *open)
{
    cJSON *list = cJSON_CreateArray();
    enum cli_exit code = add_decisions(cli, plan, list);
    const cJSON *r;

    if (code == CLI_OK && cli->json) {
        while (cJSON_GetArraySize(open) > 0) {
            (void)cJSON_AddItemToArray(list, cJSON_DetachItemFromArray(open, 0));
        }
        cli_print_json(list);
    } else if (code == CLI_OK) {
        cJSON_ArrayForEach(r, list)
        {
            struct buf line;
            buf_init(&line, SIZE_MAX / 2);
            review_decision(r, &line);
            print_buf(&line);
        }
    }
    cJSON_Delete(list);
    return code;
}

/* Reports an unknown plan. */
static enum cli_exit look_for_plan(struct cli *cli, const char *plan)
{
    cJSON *fields = cli_fields("planId", plan);
    cJSON *answer = NULL;
    enum cli_exit code;

    (void)cJSON_AddFalseToObject(fields, "steps");
    code = cli_call(cli, "plan.get", fields, &answer);
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_reviews(struct cli *cli)
{
    const char *plan = cli->argc == 1 ? cli->argv[0] : NULL;
    cJSON *answer = NULL;
    enum cli_exit code = cli_call(cli, "review.list", cli_fields("planId", plan), &answer);
    cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "reviews");
    const cJSON *r;

    if (code == CLI_OK && plan != NULL && cJSON_GetArraySize(list) == 0) {
        code = look_for_plan(cli, plan);
    }
    if (code == CLI_OK && cli_flag(cli, "all")) {
        code = print_all(cli, plan, list);
    } else if (code == CLI_OK && cli->json) {
        cli_print_json(list);
    }
    if (code == CLI_OK && !cli->json && cJSON_GetArraySize(list) == 0) {
        cli_note("nothing waits for a person%s\n",
                 cli_flag(cli, "all") ? "" : "; what was decided: baton reviews --all");
    }
    list = code == CLI_OK && !cli->json ? list : NULL;
    cJSON_ArrayForEach(r, list)
    {
        struct buf text;
        buf_init(&text, SIZE_MAX / 2);
        review_brief(cli, r, &text);
        print_buf(&text);
    }
    cJSON_Delete(answer);
    return code;
}

/* ---- which review ---- */

/* Whether the text is the whole id of a review: it ends with /r and its serial. A whole id is never
 * taken for a short one, so a decision that is sent again is about the same review. */
static bool is_review_id(const char *text)
{
    const char *last = strrchr(text, '/');

    return last != NULL && last[1] == 'r' && last[2] != 0 &&
           strspn(last + 2, "0123456789") == strlen(last + 2);
}

/* Lists the open reviews when there are several. */
static void print_open_reviews(const struct cli *cli, const char *plan, const cJSON *reviews)
{
    const cJSON *r;

    cli_error("plan %s waits for %d decisions; name one: baton %s REVIEW_ID", plan,
              cJSON_GetArraySize(reviews), cli->verb->name);
    cJSON_ArrayForEach(r, reviews)
    {
        char prompt[128];
        cli_one_line(prompt, sizeof prompt, json_text(r, "prompt", ""));
        cli_note("  %s  %s  %s\n", json_text(r, "reviewId", ""), json_text(r, "kind", ""), prompt);
    }
}

/* A short name may stand for a review that the person has not seen: it is printed. */
static void show_decided(struct cli *cli, const cJSON *review)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    review_brief(cli, review, &text);
    cli_note("%s", buf_cstr(&text));
    buf_done(&text);
}

/* The only open review of a plan, or of one of its steps. */
static enum cli_exit find_open(struct cli *cli, const char *plan, const char *step,
                               char ret_id[ID_MAX])
{
    cJSON *answer = NULL;
    const cJSON *found = NULL;
    const cJSON *reviews;
    const cJSON *r;
    int n = 0;
    enum cli_exit code = look_for_plan(cli, plan);

    if (code != CLI_OK) {
        return code;
    }
    code = cli_call(cli, "review.list", cli_fields("planId", plan), &answer);
    reviews = get(answer, "reviews");
    cJSON_ArrayForEach(r, reviews)
    {
        if (step == NULL || strcmp(json_text(r, "stepId", ""), step) == 0) {
            found = r;
            n++;
        }
    }
    if (code == CLI_OK && n == 1) {
        (void)snprintf(ret_id, ID_MAX, "%s", json_text(found, "reviewId", ""));
        if (strcmp(cli->verb->name, "review") != 0) {
            show_decided(cli, found);
        }
    } else if (code == CLI_OK && n > 1) {
        print_open_reviews(cli, plan, reviews);
        code = CLI_USAGE;
    } else if (code == CLI_OK) {
        cli_error("%s%s%splan %s waits for no decision", step != NULL ? "step " : "",
                  step != NULL ? step : "", step != NULL ? " of " : "", plan);
        code = CLI_NOT_FOUND;
    }
    cJSON_Delete(answer);
    return code;
}

/* REVIEW_ID, PLAN_ID, PLAN_ID STEP_ID or PLAN_ID/STEP_ID: the id of the review that is meant. */
static enum cli_exit find_review(struct cli *cli, const char *named, const char *step,
                                 char ret_id[ID_MAX])
{
    char plan[ID_MAX];
    char *slash;

    if (strlen(named) >= ID_MAX) {
        cli_error("%s: expected a review's or a plan's id", cli->verb->name);
        return CLI_USAGE;
    }
    if (step == NULL && is_review_id(named)) {
        (void)snprintf(ret_id, ID_MAX, "%s", named);
        return CLI_OK;
    }
    (void)snprintf(plan, sizeof plan, "%s", named);
    slash = strchr(plan, '/');
    if (step == NULL && slash != NULL) {
        *slash = 0;
        step = slash + 1;
    }
    return find_open(cli, plan, step, ret_id);
}

/* ---- review show ---- */

/* A plan that was changed: the revision that was signed off against this one. */
static enum cli_exit show_revisions(struct cli *cli, const cJSON *r)
{
    const double revision = json_number(r, "revision");
    const double signed_off = json_number(r, "signedOffRevision");
    char before[ID_MAX];
    char after[ID_MAX];

    (void)snprintf(before, sizeof before, "%.64s@%.0f", json_text(r, "planId", ""),
                   signed_off > 0 ? signed_off : revision - 1);
    (void)snprintf(after, sizeof after, "%.64s@%.0f", json_text(r, "planId", ""), revision);
    return cli_plan_diff(cli, before, after);
}

static enum cli_exit show(struct cli *cli, const cJSON *r, const char *as)
{
    struct buf text;
    bool fits = true;

    if (cli->json || strcmp(as, "json") == 0) {
        cli_print_json(r);
        return CLI_OK;
    }
    if (strcmp(as, "diff") == 0 && json_number(r, "revision") > 1) {
        return show_revisions(cli, r);
    }
    buf_init(&text, SIZE_MAX / 2);
    if (strcmp(as, "table") == 0) {
        fits = review_tables(r, &text);
    } else if (strcmp(as, "diff") == 0) {
        fits = review_diff(r, &text);
    } else {
        review_text(r, 0, &text);
    }
    print_buf(&text);
    if (!fits) {
        cli_error("review show: %s; see it with --as text",
                  as[0] == 't' ? "there is no list of objects in it"
                               : "there is no 'before' and 'after' in it");
    }
    return fits ? CLI_OK : CLI_USAGE;
}

enum cli_exit verb_review(struct cli *cli)
{
    static const char *const forms[] = {"text", "diff", "table", "json", NULL};
    const char *as = cli_value(cli, "as") != NULL ? cli_value(cli, "as") : "text";
    char id[ID_MAX] = "";
    cJSON *answer = NULL;
    enum cli_exit code;
    int form = 0;

    while (forms[form] != NULL && strcmp(forms[form], as) != 0) {
        form++;
    }
    if (strcmp(cli->argv[0], "show") != 0 || forms[form] == NULL) {
        cli_error("review: expected review show REVIEW_ID [--as text|diff|table|json]");
        return CLI_USAGE;
    }
    code = find_review(cli, cli->argv[1], NULL, id);
    if (code == CLI_OK) {
        code = cli_call(cli, "review.get", cli_fields("reviewId", id), &answer);
    }
    if (code == CLI_OK) {
        code = show(cli, get(answer, "review"), as);
    }
    cJSON_Delete(answer);
    return code;
}

/* The document of --edit or --plan. Prints the error and returns false. */
static bool read_edit(struct cli *cli, const char *decision, cJSON **ret)
{
    const char *edit = cli_value(cli, "edit");
    const char *file = cli_value(cli, "plan");
    char *plan;

    *ret = NULL;
    if (file != NULL && (edit != NULL || strcmp(decision, "approve") != 0)) {
        cli_error("%s: --plan goes with approve, and not with --edit", cli->verb->name);
        return false;
    }
    if (edit != NULL) {
        *ret = cli_read_value(edit, "--edit");
    } else if (file != NULL && (plan = cli_read_plan(cli, file)) != NULL) {
        *ret = cJSON_CreateObject();
        (void)cJSON_AddItemToObject(*ret, "plan", json_tree(plan));
        cJSON_free(plan);
    }
    return *ret != NULL || (edit == NULL && file == NULL);
}

static enum cli_exit decide(struct cli *cli, const char *review_id, const char *decision)
{
    cJSON *fields = cli_fields("reviewId", review_id);
    cJSON *answer = NULL;
    cJSON *edit = NULL;
    enum cli_exit code;

    (void)cJSON_AddStringToObject(fields, "decision", decision);
    cli_add_value(cli, "comment", fields, "comment");
    if (!read_edit(cli, decision, &edit)) {
        cJSON_Delete(fields);
        return CLI_USAGE;
    }
    if (edit != NULL) {
        (void)cJSON_AddItemToObject(fields, "edit", edit);
    }
    code = cli_call(cli, "review.decide", fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_decide(struct cli *cli)
{
    char id[ID_MAX] = "";
    enum cli_exit code = find_review(cli, cli->argv[0], NULL, id);

    return code == CLI_OK ? decide(cli, id, cli->argv[1]) : code;
}

static enum cli_exit decide_found(struct cli *cli, const char *decision)
{
    char id[ID_MAX] = "";
    enum cli_exit code;

    if (cli->argc == 2 &&
        (strchr(cli->argv[0], '/') != NULL || strchr(cli->argv[1], ' ') != NULL)) {
        cli_error("'%s' is no step; words for the journal are: baton %s %s --comment '%s'",
                  cli->argv[1], decision, cli->argv[0], cli->argv[1]);
        return CLI_USAGE;
    }
    code = find_review(cli, cli->argv[0], cli->argc == 2 ? cli->argv[1] : NULL, id);

    if (code == CLI_OK) {
        code = decide(cli, id, decision);
    }
    if (code == CLI_OK && !cli->json) {
        cli_note("%s %s\n", strcmp(decision, "approve") == 0 ? "approved" : "rejected", id);
    }
    return code;
}

enum cli_exit verb_approve(struct cli *cli)
{
    return decide_found(cli, "approve");
}

enum cli_exit verb_reject(struct cli *cli)
{
    return decide_found(cli, "reject");
}
