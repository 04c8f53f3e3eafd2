/* The cards of the skills, the settings, and the handler of chart. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/report/report.h"
#include "agents/sdk/input.h"
#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/settings.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Members of input schemas; clang-format would reflow them. */
/* clang-format off */
#define TEXT(name, most) "\"" name "\":{\"type\":\"string\",\"maxLength\":" most "}"
#define SAYS(words) ",\"description\":\"" words "\""
#define ROWS SAYS("{columns, rows}, a list of objects, a map, or CSV text; when missing, the result of the step before")
#define ARTIFACT \
    "\"artifact\":{\"type\":\"boolean\"" SAYS("put the result into a file of the plan, of any size") "}," \
    "\"name\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}$\"" SAYS("of that file") "}"
#define CHART \
    "\"kind\":{\"enum\":[\"bar\",\"line\",\"stacked\",\"histogram\",\"gantt\"]}," \
    TEXT("title", "500") "," TEXT("xTitle", "500") "," TEXT("yTitle", "500") "," \
    "\"label\":{\"type\":\"string\"" SAYS("the column of names, or of a line's numbers or dates") "}," \
    "\"series\":{\"type\":[\"string\",\"array\"],\"items\":{\"type\":\"string\"},\"maxItems\":8" \
    SAYS("columns of numbers; missing = all of them") "}," \
    "\"start\":{\"type\":\"string\"" SAYS("gantt: the column of starts") "}," \
    "\"end\":{\"type\":\"string\"" SAYS("gantt: the column of ends; an empty one is a milestone") "}," \
    "\"bins\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":200}," \
    "\"width\":{\"type\":\"integer\",\"minimum\":200,\"maximum\":4000}," \
    "\"height\":{\"type\":\"integer\",\"minimum\":200,\"maximum\":4000}"
/* clang-format on */

enum { SETTINGS_BYTES = 64 * 1024 };

const struct bt_skill report_skills[] = {
    {.id = "chart",
     .name = "Draw a chart",
     .description =
         "Draws rows as an SVG picture: bars, stacked bars, lines, a histogram or a Gantt "
         "chart.",
     .tags = LIST("chart", "plot", "graph", "svg", "histogram", "gantt", "draw", "diagram"),
     .examples = LIST("draw a bar chart of the counts", "plot the durations as a histogram"),
     .input_schema =
         "{\"type\":\"object\",\"x-baton-local\":true,\"required\":[\"kind\"],\"properties\":"
         "{" CHART ",\"values\":{\"x-baton-fill\":\"previous\"" ROWS "}," ARTIFACT "}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"kind\",\"rows\",\"width\",\"height\"]}",
     .effects = "none",
     .run = report_chart},
    {.id = "document",
     .name = "Make a document",
     .description = "Makes a document from a title and sections with texts, lists, tables and "
                    "charts: Markdown, one HTML page, or a PDF.",
     .tags = LIST("pdf", "html", "page", "document", "publish", "illustrated"),
     .examples = LIST("make a PDF of the results", "make an HTML page with charts"),
     .input_schema = "{\"type\":\"object\",\"x-baton-local\":true,\"properties\":{" TEXT(
         "title",
         "500") ","
                "\"text\":{\"type\":\"string\",\"x-baton-fill\":\"previous.text\","
                "\"description\":\"Markdown; stands before the sections\"},"
                "\"sections\":{\"type\":\"array\",\"maxItems\":200,\"items\":{\"type\":\"object\","
                "\"additionalProperties\":false,\"properties\":{\"heading\":{\"type\":\"string\"},"
                "\"text\":{},\"list\":{\"type\":\"array\"},"
                "\"table\":{\"description\":\"rows, in any form\"},"
                "\"chart\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":["
                "\"kind\","
                "\"values\"],\"properties\":{\"values\":{}," CHART "}}}}},"
                "\"format\":{\"enum\":[\"markdown\",\"html\",\"pdf\"]}," ARTIFACT "}}",
     .output_schema = "{\"type\":\"object\",\"required\":[\"format\",\"bytes\",\"charts\"]}",
     .effects = "none",
     .run = report_document},
};
const size_t report_skill_count = sizeof report_skills / sizeof report_skills[0];

/* ---- settings ---- */

enum bt_code report_new(const char *settings_json, struct report **ret, struct bt_error *err)
{
    static const char *const known[] = {"browser"};
    struct report *r = calloc(1, sizeof *r);
    struct arena arena = {0};
    struct buf bytes;
    const char *browser = NULL;
    enum bt_code code;

    if (r == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    buf_init(&bytes, json_doc_capacity(SETTINGS_BYTES));
    code = json_to_doc(str_from(settings_json), NULL, &bytes, err);
    code = code == BT_OK ? settings_check_names(doc_from_buf(&bytes), known, 1, err) : code;
    code = code == BT_OK ? field_text(&arena, doc_from_buf(&bytes), "browser", false, &browser, err)
                         : code;
    if (code == BT_OK && browser != NULL && (r->browser = strdup(browser)) == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    buf_done(&bytes);
    arena_done(&arena);
    if (code != BT_OK) {
        report_free(r);
        return code;
    }
    *ret = r;
    return BT_OK;
}

void report_free(struct report *r)
{
    if (r != NULL) {
        free(r->browser);
        free(r);
    }
}

/* ---- chart ---- */

static enum bt_code reply_chart(struct bt_step *step, struct chart *c, struct bt_error *err)
{
    const bool file = bt_step_param_bool(step, "artifact", false);
    const char *name = bt_step_param_string(step, "name", "chart.svg");
    struct buf svg;
    struct buf text;
    cJSON *data = NULL;
    enum bt_code code;

    buf_init(&svg, REPORT_PAGE_BYTES);
    buf_init(&text, 512);
    chart_draw(c, &svg);
    chart_describe(c, &text);
    code = buf_check(&svg, err);
    if (code == BT_OK && file) {
        code = report_artifact(step, name, "image/svg+xml", &svg, err);
    } else if (code == BT_OK && svg.len > LIMIT_RESULT_BYTES / 2) {
        code = err_set(err, BT_LIMIT,
                       "the picture has %zu bytes, a result at most %d: put it into a file of the "
                       "plan: artifact: true",
                       svg.len, LIMIT_RESULT_BYTES / 2);
    }
    if (code == BT_OK) {
        data = cJSON_CreateObject();
        (void)cJSON_AddStringToObject(data, "kind", bt_step_param_string(step, "kind", ""));
        (void)cJSON_AddNumberToObject(data, "rows", c->table.rows_n);
        (void)cJSON_AddNumberToObject(data, "width", c->width);
        (void)cJSON_AddNumberToObject(data, "height", c->height);
        (void)cJSON_AddStringToObject(data, file ? "name" : "svg", file ? name : buf_cstr(&svg));
        input_reply_buf(step, data, &text);
    }
    buf_done(&svg);
    buf_done(&text);
    return code;
}

void report_chart(struct bt_step *step, void *self)
{
    struct chart chart = {0};
    cJSON *params = NULL;
    cJSON *values = NULL;
    struct bt_error err;
    enum bt_code code = input_parameters(step, &params, &err);

    (void)self;
    code = code == BT_OK ? input_tree(step, "values", &values, &err) : code;
    if (code == BT_OK && values == NULL) {
        code = err_set(&err, BT_INVALID,
                       "values: give the rows, or let a step before this one make them");
    }
    code = code == BT_OK ? chart_read(params, values, &chart, &err) : code;
    code = code == BT_OK ? reply_chart(step, &chart, &err) : code;
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    }
    chart_done(&chart);
    cJSON_Delete(values);
    cJSON_Delete(params);
}
