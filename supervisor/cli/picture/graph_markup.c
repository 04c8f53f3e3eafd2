/* A graph for other programs: DOT and Mermaid. Neither needs a layout of ours. */
#include <string.h>

#include "supervisor/cli/picture/graph.h"

enum { TEXT_BYTES_MAX = 16384 };

/* DOT reads backslashes, quotes and the entities of HTML in a quoted text. */
static void put_dot(const char *raw, struct buf *text, struct buf *out)
{
    buf_clear(text);
    look_clean(raw, false, text);
    for (const char *p = buf_cstr(text); *p != 0; p++) {
        if (*p == '"' || *p == '\\') {
            buf_add_byte(out, '\\');
        }
        buf_add_byte(out, (uint8_t)*p);
        buf_add_cstr(out, *p == '&' ? "amp;" : "");
    }
}

enum bt_code graph_dot(const struct graph *g, struct buf *out, struct bt_error *err)
{
    struct buf text;

    buf_init(&text, TEXT_BYTES_MAX);
    buf_add_cstr(out, "digraph \"");
    put_dot(g->title, &text, out);
    buf_add_cstr(out, "\" {\n  graph [label=\"");
    put_dot(g->title, &text, out);
    buf_add_cstr(out, "\", labelloc=t, fontname=\"sans-serif\"];\n"
                      "  node [shape=box, style=\"rounded,filled\", fontname=\"monospace\"];\n");
    for (uint32_t i = 0; i < g->n; i++) {
        const struct graph_step *s = &g->steps[i];
        buf_printf(out, "  s%u [label=\"", i + 1);
        put_dot(s->id, &text, out);
        if (s->detail[0] != 0) {
            buf_add_cstr(out, "\\n");
            put_dot(s->detail, &text, out);
        }
        if (s->when != NULL) {
            buf_add_cstr(out, "\\nif ");
            put_dot(s->when, &text, out);
        }
        buf_printf(out, "\", fillcolor=\"%s\", color=\"%s\"];\n", look_fill(s->status),
                   look_stroke(s->status));
    }
    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t k = 0; k < g->steps[i].n_deps; k++) {
            buf_printf(out, "  s%u -> s%u%s;\n", g->steps[i].deps[k] + 1, i + 1,
                       g->steps[i].when != NULL ? " [style=dashed]" : "");
        }
    }
    buf_add_cstr(out, "}\n");
    buf_done(&text);
    return buf_check(out, err);
}

static bool is_plain(const char *p)
{
    const unsigned char c = (unsigned char)*p;

    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c >= 0x80 || (c == ' ') ||
           (strchr("-_.,:/", c) != NULL && p[1] != ' '); /* "1. " and "- " begin lists */
}

static void put_mermaid(const char *raw, struct buf *text, struct buf *out)
{
    buf_clear(text);
    look_clean(raw, false, text);
    for (const char *p = buf_cstr(text); *p != 0; p++) {
        if (is_plain(p)) {
            buf_add_byte(out, (uint8_t)*p);
        } else {
            buf_printf(out, "#%u;", (unsigned)(unsigned char)*p);
        }
    }
}

static void put_classes(const struct graph *g, struct buf *out)
{
    static const char *const statuses[] = {"completed", "failed",    "in_progress", "waiting",
                                           "skipped",   "cancelled", "pending"};

    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        bool used = false;
        for (uint32_t k = 0; k < g->n && !used; k++) {
            used = strcmp(g->steps[k].status, statuses[i]) == 0;
        }
        if (used) {
            buf_printf(out, "  classDef %s fill:%s,stroke:%s\n", statuses[i],
                       look_fill(statuses[i]), look_stroke(statuses[i]));
        }
        for (uint32_t k = 0; k < g->n && used; k++) {
            if (strcmp(g->steps[k].status, statuses[i]) == 0) {
                buf_printf(out, "  class s%u %s\n", k + 1, statuses[i]);
            }
        }
    }
}

enum bt_code graph_mermaid(const struct graph *g, struct buf *out, struct bt_error *err)
{
    struct buf text;

    buf_init(&text, TEXT_BYTES_MAX);
    buf_add_cstr(out, "flowchart TD\n");
    for (uint32_t i = 0; i < g->n; i++) {
        const struct graph_step *s = &g->steps[i];
        buf_printf(out, "  s%u[\"", i + 1);
        put_mermaid(s->id, &text, out);
        if (s->detail[0] != 0) {
            buf_add_cstr(out, "<br/>");
            put_mermaid(s->detail, &text, out);
        }
        if (s->when != NULL) {
            buf_add_cstr(out, "<br/>if ");
            put_mermaid(s->when, &text, out);
        }
        buf_add_cstr(out, "\"]\n");
    }
    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t k = 0; k < g->steps[i].n_deps; k++) {
            buf_printf(out, "  s%u %s s%u\n", g->steps[i].deps[k] + 1,
                       g->steps[i].when != NULL ? "-.->" : "-->", i + 1);
        }
    }
    put_classes(g, out);
    buf_done(&text);
    return buf_check(out, err);
}
