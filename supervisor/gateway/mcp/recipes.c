/* Recipes of a directory as tools: listed with their inputs as schema, filled in and run. The files
 * are read each time, so that a changed one counts at once. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/gateway/incoming/incoming.h"
#include "supervisor/gateway/mcp/mcp_internal.h"

enum { RECIPES_MAX = 64, NAME_BYTES = 64, PATH_BYTES = 4600 };

#define PREFIX "recipe__"

struct recipe {
    char tool[sizeof PREFIX + NAME_BYTES];
    struct doc doc;
};

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);

    return n > m && strcmp(name + n - m, end) == 0;
}

static int is_file(const struct dirent *d)
{
    return ends_with(d->d_name, ".yaml") || ends_with(d->d_name, ".yml") ||
           ends_with(d->d_name, ".json");
}

/* That of the recipe, else of its file; other characters than those of tools become _. */
static void name_tool(struct recipe *r, const char *file)
{
    const struct str own = doc_string(doc_path(r->doc, STR_LIT("recipe.name")));
    const struct str name =
        own.len > 0 ? own : (struct str){file, (size_t)(strrchr(file, '.') - file)};
    const size_t n = name.len < NAME_BYTES - sizeof PREFIX ? name.len : NAME_BYTES - sizeof PREFIX;

    (void)snprintf(r->tool, sizeof r->tool, PREFIX "%.*s", (int)n, name.ptr);
    for (char *c = r->tool; *c != 0; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
              *c == '-' || *c == '_')) {
            *c = '_';
        }
    }
}

/* Calls take with each recipe, in the order of their files, until it returns true. */
static void each(const char *dir, bool (*take)(void *self, const struct recipe *r), void *self)
{
    struct dirent **files = NULL;
    const int n = dir == NULL ? 0 : scandir(dir, &files, is_file, alphasort);
    bool done = false;
    int taken = 0;

    for (int i = 0; i < n; i++) {
        char path[PATH_BYTES];
        struct recipe r;
        struct bt_error err;
        struct buf doc;
        buf_init(&doc, json_doc_capacity(LIMIT_CONTROL_BYTES));
        (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]->d_name);
        if (!done && taken < RECIPES_MAX && incoming_read_file(path, &doc, &err) == BT_OK) {
            r.doc = doc_from_buf(&doc);
            if (incoming_is_recipe(r.doc)) {
                name_tool(&r, files[i]->d_name);
                done = take(self, &r);
                taken++;
            }
        }
        buf_done(&doc);
        free(files[i]);
    }
    free(files);
}

/* An object, whether its author said so or not. */
static void put_schema(struct buf *out, struct doc inputs)
{
    struct doc_cursor at = doc_cursor(inputs);
    struct doc_head head = {.n = 0};
    struct buf name;

    json_open(out, '{');
    json_key(out, "type");
    json_cstr(out, "object");
    if (inputs.ptr != NULL) {
        (void)doc_next(&at, &head);
    }
    buf_init(&name, 1024);
    for (uint32_t i = 0; head.kind == DOC_MAP && i < head.n; i++) {
        const struct str key = doc_string(doc_skip(&at));
        const struct doc value = doc_skip(&at);
        buf_clear(&name);
        buf_add_str(&name, key);
        if (!str_is(key, "type") && buf_check(&name, NULL) == BT_OK) {
            json_key(out, buf_cstr(&name));
            json_doc(out, value);
        }
    }
    buf_done(&name);
    json_close(out, '}');
}

static bool put_tool(void *self, const struct recipe *r)
{
    struct buf *out = self;
    const struct doc about = doc_get(r->doc, STR_LIT("recipe"));

    json_open(out, '{');
    json_member(out, "name", str_from(r->tool));
    json_member(out, "title", doc_string(doc_get(about, STR_LIT("title"))));
    json_member(out, "description", doc_string(doc_get(about, STR_LIT("description"))));
    json_key(out, "inputSchema");
    put_schema(out, doc_get(r->doc, STR_LIT("inputs")));
    json_key(out, "annotations");
    json_raw(out, "{\"readOnlyHint\":false,\"openWorldHint\":true}");
    json_close(out, '}');
    return false;
}

void mcp_put_recipes(const struct mcp *m, struct buf *out)
{
    each(m->h->s->opt->recipes, put_tool, out);
}

struct search {
    struct mcp *m;
    struct buf *plan;
    struct bt_error *err;
    enum bt_code code;
};

static bool fill(void *self, const struct recipe *r)
{
    struct search *s = self;
    const struct doc arguments = mcp_param(s->m, "arguments");

    if (!str_is(doc_string(mcp_param(s->m, "name")), r->tool)) {
        return false;
    }
    s->code = incoming_fill_recipe(r->doc, arguments, s->plan, s->err);
    return true;
}

bool mcp_run_recipe(struct mcp *m, call_done *done)
{
    const struct str name = doc_string(mcp_param(m, "name"));
    struct bt_error err;
    struct buf plan, fields;
    struct search s = {.m = m, .plan = &plan, .err = &err, .code = BT_NOT_FOUND};

    if (name.len < sizeof PREFIX || memcmp(name.ptr, PREFIX, sizeof PREFIX - 1) != 0) {
        return false;
    }
    buf_init(&plan, LIMIT_CONTROL_BYTES);
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    each(m->h->s->opt->recipes, fill, &s);
    if (s.code == BT_OK) {
        doc_put_map(&fields, 1);
        doc_put_cstr(&fields, "plan");
        doc_put_doc(&fields, doc_from_buf(&plan));
        s.code = buf_check(&fields, &err);
    }
    if (s.code == BT_OK) {
        mcp_ask(m, MSG_plan_submit, MSG_plan_submit_ok, false, doc_from_buf(&fields), done);
    } else if (s.code != BT_NOT_FOUND) {
        mcp_begin(m, &m->h->out);
        mcp_put_problem(&m->h->out,
                        &(struct problem){.code = s.code, .message = str_from(err.msg)});
        mcp_end(&m->h->out);
        mcp_answer(m);
    }
    buf_done(&fields);
    buf_done(&plan);
    return s.code != BT_NOT_FOUND;
}
