/* A document as one HTML page. Markdown is read by cmark-gfm, whose safe mode is kept. */
#include <stdlib.h>
#include <string.h>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

#include "agents/report/report.h"
#include "agents/report/svg.h"

static const char HEAD[] =
    "<!doctype html>\n<html><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>";
static const char STYLE[] =
    "</title>\n<style>\n"
    "body{font:16px/1.5 sans-serif;color:#222;max-width:52em;margin:2em auto;padding:0 1em}\n"
    "h1,h2,h3{line-height:1.25}p,li,td,th,h1,h2,h3{unicode-bidi:plaintext;overflow-wrap:anywhere}\n"
    "table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:.25em .6em}\n"
    "thead{display:table-header-group}tr,figure{break-inside:avoid}th{background:#f4f4f4}\n"
    "figure{margin:1em 0}svg{max-width:100%;height:auto}pre{overflow-x:auto;white-space:pre-wrap;"
    "background:#f4f4f4;padding:.6em}\n"
    "@page{size:A4;margin:18mm}@media print{body{font-size:11pt;margin:0;max-width:none}}\n"
    "</style></head><body>\n";

void page_start(void)
{
    cmark_gfm_core_extensions_ensure_registered();
}

/* HTML in the texts is shown as it stands: safe mode alone would leave it out in silence. A picture
 * that is elsewhere becomes a link, because the page fetches nothing. */
static void show_markup(cmark_node *root)
{
    cmark_iter *at = cmark_iter_new(root);
    cmark_event_type event;

    while ((event = cmark_iter_next(at)) != CMARK_EVENT_DONE) {
        cmark_node *node = cmark_iter_get_node(at);
        const cmark_node_type type = cmark_node_get_type(node);
        const char *url = type == CMARK_NODE_IMAGE ? cmark_node_get_url(node) : NULL;
        const bool inline_markup = type == CMARK_NODE_HTML_INLINE;
        if (event == CMARK_EVENT_ENTER && url != NULL && strncmp(url, "data:", 5) != 0) {
            char *kept = strdup(url); /* the node forgets it with its type */
            (void)cmark_node_set_type(node, CMARK_NODE_LINK);
            (void)cmark_node_set_url(node, kept != NULL ? kept : "");
            free(kept);
        }
        if (event == CMARK_EVENT_ENTER && (inline_markup || type == CMARK_NODE_HTML_BLOCK)) {
            cmark_node *shown =
                cmark_node_new(inline_markup ? CMARK_NODE_TEXT : CMARK_NODE_CODE_BLOCK);
            (void)cmark_node_set_literal(shown, cmark_node_get_literal(node));
            (void)cmark_node_insert_before(node, shown);
            cmark_node_unlink(node);
            cmark_node_free(node);
        }
    }
    cmark_iter_free(at);
}

static enum bt_code put_markdown(struct str text, struct buf *out, struct bt_error *err)
{
    cmark_parser *parser = cmark_parser_new(CMARK_OPT_VALIDATE_UTF8);
    static const char *const extensions[] = {"table", "strikethrough", "autolink"};
    cmark_node *root;
    char *html;

    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        cmark_syntax_extension *e = cmark_find_syntax_extension(extensions[i]);
        if (e != NULL) {
            (void)cmark_parser_attach_syntax_extension(parser, e);
        }
    }
    cmark_parser_feed(parser, text.ptr, text.len);
    root = cmark_parser_finish(parser);
    show_markup(root);
    html = cmark_render_html(root, CMARK_OPT_VALIDATE_UTF8,
                             cmark_parser_get_syntax_extensions(parser));
    if (html == NULL) {
        (void)err_set(err, BT_NOMEM, "out of memory for a page");
    } else {
        buf_add_cstr(out, html);
    }
    free(html);
    cmark_node_free(root);
    cmark_parser_free(parser);
    return html == NULL ? BT_NOMEM : BT_OK;
}

enum bt_code pieces_to_html(const struct pieces *p, struct buf *out, struct bt_error *err)
{
    buf_add_cstr(out, HEAD);
    svg_put_escaped(out, str_from(p->title[0] != 0 ? p->title : "Report"));
    buf_add_cstr(out, STYLE);
    for (size_t i = 0; i < p->n; i++) {
        enum bt_code code = buf_check(&p->at[i].markdown, err);
        code = code == BT_OK ? put_markdown(buf_str(&p->at[i].markdown), out, err) : code;
        if (code != BT_OK) {
            return code;
        }
        if (p->at[i].svg.len > 0) {
            buf_add_cstr(out, "<figure>\n");
            buf_add_str(out, buf_str(&p->at[i].svg));
            buf_add_cstr(out, "</figure>\n");
        }
    }
    buf_add_cstr(out, "</body></html>\n");
    return buf_check(out, err);
}
