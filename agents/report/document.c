/* document: title, text and sections become Markdown, a page or a PDF. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/report/report.h"
#include "agents/sdk/input.h"
#include "agents/sdk/markdown.h"

enum { FORMAT_MARKDOWN, FORMAT_HTML, FORMAT_PDF };

static const char *const FORMATS[] = {"markdown", "html", "pdf"};
static const char *const NAMES[] = {"report.md", "report.html", "report.pdf"};
static const char *const TYPES[] = {"text/markdown", "text/html", "application/pdf"};

void pieces_done(struct pieces *p)
{
    for (size_t i = 0; i < p->n; i++) {
        buf_done(&p->at[i].markdown);
        buf_done(&p->at[i].svg);
    }
    free(p->at);
    *p = (struct pieces){0};
}

static struct piece *add_piece(struct pieces *p)
{
    struct piece *one = &p->at[p->n++];

    *one = (struct piece){.svg_title = ""};
    buf_init(&one->markdown, REPORT_PAGE_BYTES);
    buf_init(&one->svg, REPORT_PAGE_BYTES);
    return one;
}

static enum bt_code draw(const cJSON *spec, struct piece *piece, struct bt_error *err)
{
    struct chart chart = {0};
    enum bt_code code =
        cJSON_IsObject(spec)
            ? chart_read(spec, cJSON_GetObjectItemCaseSensitive(spec, "values"), &chart, err)
            : err_set(err, BT_INVALID, "expected {kind, values, ...}");

    if (code == BT_OK) {
        piece->svg_title = chart.title;
        chart_draw(&chart, &piece->svg);
        code = buf_check(&piece->svg, err);
    }
    chart_done(&chart);
    return code == BT_OK ? BT_OK : err_wrap(err, "chart");
}

static enum bt_code read_sections(const cJSON *sections, struct pieces *p, struct bt_error *err)
{
    const cJSON *section;
    int charts = 0;
    int i = 0;

    cJSON_ArrayForEach(section, sections)
    {
        const cJSON *chart = cJSON_GetObjectItemCaseSensitive(section, "chart");
        struct piece *piece = add_piece(p);
        enum bt_code code = markdown_section(section, &piece->markdown, err);
        if (code == BT_OK && chart != NULL) {
            charts++;
            code = charts > REPORT_CHARTS_MAX
                       ? err_set(err, BT_LIMIT, "more than %d charts", REPORT_CHARTS_MAX)
                       : draw(chart, piece, err);
        }
        if (code != BT_OK) {
            return err_wrap(err, "sections[%d]", i);
        }
        i++;
    }
    return BT_OK;
}

enum bt_code pieces_read(struct bt_step *step, const cJSON *params, struct pieces *ret,
                         struct bt_error *err)
{
    const cJSON *sections = cJSON_GetObjectItemCaseSensitive(params, "sections");
    const int n = cJSON_GetArraySize(sections);
    const char *text =
        sections == NULL ? input_text(step, "text") : bt_step_param_string(step, "text", NULL);
    struct piece *head;

    *ret = (struct pieces){.title = bt_step_param_string(step, "title", "")};
    if (sections == NULL && text == NULL) {
        return err_set(err, BT_INVALID,
                       "give sections or a text, or let a step before this one make it");
    }
    if (n > REPORT_SECTIONS_MAX) {
        return err_set(err, BT_LIMIT, "sections: more than %d", REPORT_SECTIONS_MAX);
    }
    ret->at = calloc((size_t)n + 1, sizeof *ret->at);
    if (ret->at == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %d sections", n);
    }
    head = add_piece(ret);
    if (ret->title[0] != 0) {
        markdown_heading("# ", ret->title, &head->markdown);
    }
    if (text != NULL) {
        buf_add_cstr(&head->markdown, text);
        markdown_end_paragraph(&head->markdown);
    }
    return read_sections(sections, ret, err);
}

/* What stands for a picture: one line, without the marks that would end it. */
static void put_alternative(const char *title, struct buf *out)
{
    for (; *title != 0; title++) {
        if (*title == '[' || *title == ']' || *title == '\\') {
            buf_add_byte(out, '\\');
        }
        buf_add_byte(out, *title == '\n' || *title == '\r' ? ' ' : (uint8_t)*title);
    }
}

enum bt_code pieces_to_markdown(const struct pieces *p, struct buf *out, struct bt_error *err)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct piece *piece = &p->at[i];
        enum bt_code code = buf_check(&piece->markdown, err);
        if (code != BT_OK) {
            return code;
        }
        buf_add_str(out, buf_str(&piece->markdown));
        if (piece->svg.len > 0) {
            buf_add_cstr(out, "![");
            put_alternative(piece->svg_title, out);
            buf_add_cstr(out, "](data:image/svg+xml;base64,");
            json_put_base64(out, buf_str(&piece->svg));
            buf_add_cstr(out, ")\n\n");
        }
    }
    while (out->len > 1 && out->at[out->len - 1] == '\n' && out->at[out->len - 2] == '\n') {
        buf_truncate(out, out->len - 1);
    }
    return buf_check(out, err);
}

/* ---- the reply ---- */

enum bt_code report_artifact(struct bt_step *step, const char *name, const char *media_type,
                             const struct buf *content, struct bt_error *err)
{
    struct bt_artifact *to = NULL;
    enum bt_code code = bt_artifact_create(step, name, media_type, &to, err);

    if (code != BT_OK) {
        return code;
    }
    code = bt_artifact_write(to, content->at, content->len, err);
    if (code == BT_OK) {
        return bt_artifact_commit(to, err);
    }
    bt_artifact_abort(to);
    return code;
}

static enum bt_code read_format(struct bt_step *step, int *ret, struct bt_error *err)
{
    const char *format = bt_step_param_string(step, "format", FORMATS[0]);

    for (int i = 0; i <= FORMAT_PDF; i++) {
        if (strcmp(format, FORMATS[i]) == 0) {
            *ret = i;
            return BT_OK;
        }
    }
    return err_set(err, BT_INVALID, "format: expected markdown, html or pdf");
}

static enum bt_code render(struct bt_step *step, const struct report *r, const struct pieces *p,
                           int format, struct buf *out, struct bt_error *err)
{
    struct buf html;
    enum bt_code code;

    if (format == FORMAT_MARKDOWN) {
        return pieces_to_markdown(p, out, err);
    }
    if (format == FORMAT_HTML) {
        return pieces_to_html(p, out, err);
    }
    buf_init(&html, REPORT_PAGE_BYTES);
    code = pieces_to_html(p, &html, err);
    code = code == BT_OK ? pdf_print(step, r, &html, out, err) : code;
    buf_done(&html);
    return code;
}

static enum bt_code reply(struct bt_step *step, const struct pieces *p, int format,
                          const struct buf *content, struct bt_error *err)
{
    const bool file = format == FORMAT_PDF || bt_step_param_bool(step, "artifact", false);
    const char *name = bt_step_param_string(step, "name", NAMES[format]);
    cJSON *data;
    size_t charts = 0;

    for (size_t i = 0; i < p->n; i++) {
        charts += p->at[i].svg.len > 0 ? 1 : 0;
    }
    if (!file && content->len > LIMIT_RESULT_BYTES / 2) {
        return err_set(err, BT_LIMIT,
                       "the document has %zu bytes, a result at most %d: put it into a file of the "
                       "plan: artifact: true",
                       content->len, LIMIT_RESULT_BYTES / 2);
    }
    if (file) {
        enum bt_code code = report_artifact(step, name, TYPES[format], content, err);
        if (code != BT_OK) {
            return code;
        }
    }
    data = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(data, "format", FORMATS[format]);
    (void)cJSON_AddNumberToObject(data, "bytes", (double)content->len);
    (void)cJSON_AddNumberToObject(data, "charts", (double)charts);
    if (file) {
        (void)cJSON_AddStringToObject(data, "name", name);
        input_reply(step, data, NULL);
        bt_step_reply_text(step, "%s, %zu bytes", name, content->len);
    } else {
        input_reply(step, data, NULL);
        bt_step_reply_bytes(step, (const char *)content->at, content->len);
    }
    return BT_OK;
}

void report_document(struct bt_step *step, void *self)
{
    struct pieces pieces = {0};
    cJSON *params = NULL;
    struct buf content;
    struct bt_error err;
    int format = FORMAT_MARKDOWN;
    enum bt_code code = read_format(step, &format, &err);

    buf_init(&content, REPORT_PAGE_BYTES);
    code = code == BT_OK ? input_parameters(step, &params, &err) : code;
    code = code == BT_OK ? pieces_read(step, params, &pieces, &err) : code;
    code = code == BT_OK ? render(step, self, &pieces, format, &content, &err) : code;
    code = code == BT_OK ? reply(step, &pieces, format, &content, &err) : code;
    if (code == BT_NOT_FOUND && format == FORMAT_PDF) {
        bt_step_fail(step, "TOOL_NOT_FOUND", false, "%s", err.msg);
    } else if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    }
    buf_done(&content);
    pieces_done(&pieces);
    cJSON_Delete(params);
}
