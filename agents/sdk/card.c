#include "agents/sdk/card.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

#include "protocol/jsonschema/schema.h"

enum { TAGS_MAX = 32, EXAMPLES_MAX = 16, SCHEMA_BYTES = 65536 };

static bool id_ok(const char *id)
{
    size_t n = id == NULL ? 0 : strlen(id);

    if (n == 0 || n > LIMIT_ID_BYTES) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        char c = id[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '.' || c == '-')) {
            return false;
        }
    }
    return true;
}

static const char *keep(struct card *c, const char *text)
{
    return text == NULL ? NULL : arena_str(&c->arena, str_from(text)).ptr;
}

enum bt_code card_set_id(struct card *c, const char *agent_id, struct bt_error *err)
{
    const char *kept;

    if (!id_ok(agent_id) || agent_id[0] == '.' || agent_id[0] == '-') {
        return err_set(err, BT_INVALID,
                       "agent id '%.80s': expected 1 to %d of [A-Za-z0-9_.-], not beginning with . "
                       "or -",
                       agent_id == NULL ? "" : agent_id, LIMIT_ID_BYTES);
    }
    kept = keep(c, agent_id);
    if (kept == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a card");
    }
    c->msg.agent_id = str_from(kept);
    return BT_OK;
}

enum bt_code card_init(struct card *c, const struct bt_agent_def *def, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    *c = (struct card){0};
    c->skills = calloc(LIMIT_SKILLS, sizeof *c->skills);
    if (c->skills == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a card");
    }
    c->msg.name = str_from(def->name);
    c->msg.icon = str_from(def->icon);
    c->msg.color = str_from(def->color);
    c->msg.description = str_from(def->description);
    c->msg.version = str_from(def->version);
    if (def->agent_id != NULL) {
        code = card_set_id(c, def->agent_id, err);
    }
    for (size_t i = 0; i < def->skill_count && code == BT_OK; i++) {
        code = card_add(c, &def->skills[i], err);
    }
    return code;
}

void card_done(struct card *c)
{
    for (uint32_t i = 0; c->skills != NULL && i < c->skills_n; i++) {
        schema_free(c->skills[i].input_compiled);
    }
    free(c->skills);
    arena_done(&c->arena);
    *c = (struct card){0};
}

/* Copies a NULL-terminated list of at most max entries. */
static enum bt_code copy_list(struct card *c, const char *const *from, size_t max,
                              const char ***ret, struct bt_error *err)
{
    const char **list;
    size_t n = 0;

    while (from != NULL && from[n] != NULL) {
        n++;
    }
    if (n > max) {
        return err_set(err, BT_LIMIT, "%zu entries in a list of tags or examples; at most %zu", n,
                       max);
    }
    list = arena_alloc(&c->arena, (n + 1) * sizeof *list);
    for (size_t i = 0; i < n && list != NULL; i++) {
        list[i] = keep(c, from[i]);
        if (list[i] == NULL) {
            list = NULL;
        }
    }
    if (list == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a card");
    }
    *ret = list;
    return BT_OK;
}

/* Takes BT_TAG_QUICK out of the copied tags, because it is for this library alone. */
static bool take_quick(const char **tags)
{
    size_t n = 0;
    bool quick = false;

    for (size_t i = 0; tags[i] != NULL; i++) {
        if (strcmp(tags[i], BT_TAG_QUICK) == 0) {
            quick = true;
        } else {
            tags[n++] = tags[i];
        }
    }
    tags[n] = NULL;
    return quick;
}

static enum bt_code read_schema(struct card *c, const char *json, const char *what,
                                struct doc *ret_doc, struct schema **ret, struct bt_error *err)
{
    struct cJSON *tree = NULL;
    struct buf out;
    enum bt_code code;

    *ret_doc = (struct doc){NULL, 0};
    if (json == NULL) {
        return BT_OK;
    }
    buf_init(&out, SCHEMA_BYTES);
    code = json_to_doc(str_from(json), NULL, &out, err);
    if (code == BT_OK) {
        *ret_doc = doc_copy(&c->arena, doc_from_buf(&out));
        code = ret_doc->ptr == NULL ? err_set(err, BT_NOMEM, "out of memory") : BT_OK;
    }
    if (code == BT_OK && ret != NULL) {
        code = doc_to_cjson(*ret_doc, &tree, err);
        if (code == BT_OK) {
            code = schema_compile(tree, ret, err);
        }
        cJSON_Delete(tree);
    }
    buf_done(&out);
    return code == BT_OK ? BT_OK : err_wrap(err, "%s", what);
}

static enum bt_code copy_skill(struct card *c, const struct bt_skill *from, struct card_skill *to,
                               struct bt_error *err)
{
    const char **tags = NULL;
    const char **examples = NULL;
    enum bt_code code;

    to->skill =
        (struct bt_skill){.id = keep(c, from->id),
                          .name = keep(c, from->name),
                          .description = keep(c, from->description),
                          .effects = keep(c, from->effects == NULL ? "idempotent" : from->effects),
                          .run = from->run,
                          .max_ms = from->max_ms};
    if (to->skill.id == NULL || to->skill.effects == NULL ||
        (from->name != NULL && to->skill.name == NULL) ||
        (from->description != NULL && to->skill.description == NULL)) {
        return err_set(err, BT_NOMEM, "out of memory for a card");
    }
    code = copy_list(c, from->tags, TAGS_MAX, &tags, err);
    if (code == BT_OK) {
        to->quick = take_quick(tags);
        to->skill.tags = tags;
        code = copy_list(c, from->examples, EXAMPLES_MAX, &examples, err);
        to->skill.examples = examples;
    }
    if (code == BT_OK) {
        code = read_schema(c, from->input_schema, "input_schema", &to->input, &to->input_compiled,
                           err);
    }
    return code == BT_OK
               ? read_schema(c, from->output_schema, "output_schema", &to->output, NULL, err)
               : code;
}

enum bt_code card_add(struct card *c, const struct bt_skill *skill, struct bt_error *err)
{
    struct card_skill made = {0};
    enum bt_code code;

    if (!id_ok(skill->id)) {
        return err_set(err, BT_INVALID, "skill id '%.80s': expected 1 to %d of [A-Za-z0-9_.-]",
                       skill->id == NULL ? "" : skill->id, LIMIT_ID_BYTES);
    }
    if (skill->run == NULL) {
        return err_set(err, BT_INVALID, "skill '%s': has no run function", skill->id);
    }
    if (skill->effects != NULL && strcmp(skill->effects, "none") != 0 &&
        strcmp(skill->effects, "idempotent") != 0 && strcmp(skill->effects, "unsafe") != 0) {
        return err_set(err, BT_INVALID,
                       "skill '%s': effects '%.40s': expected none, idempotent or unsafe",
                       skill->id, skill->effects);
    }
    for (uint32_t i = 0; i < c->skills_n; i++) {
        if (strcmp(c->skills[i].skill.id, skill->id) == 0) {
            return err_set(err, BT_CONFLICT, "skill '%s': there are two of that id", skill->id);
        }
    }
    if (c->skills_n == LIMIT_SKILLS) {
        return err_set(err, BT_LIMIT, "skill '%s': an agent has at most %d skills", skill->id,
                       LIMIT_SKILLS);
    }
    code = copy_skill(c, skill, &made, err);
    if (code != BT_OK) {
        schema_free(made.input_compiled);
        return err_wrap(err, "skill '%s'", skill->id);
    }
    c->skills[c->skills_n++] = made;
    return BT_OK;
}

enum bt_code card_check_complete(const struct card *c, struct bt_error *err)
{
    if (c->msg.agent_id.len == 0) {
        return err_set(err, BT_INVALID, "the agent has no id; give --agent-id ID");
    }
    if (c->skills_n == 0) {
        return err_set(err, BT_INVALID, "the agent '%.*s' has no skills", STR_ARG(c->msg.agent_id));
    }
    return BT_OK;
}

const struct card_skill *card_find(const struct card *c, const char *id)
{
    if (id[0] == 0) {
        return c->skills_n == 1 ? &c->skills[0] : NULL;
    }
    for (uint32_t i = 0; i < c->skills_n; i++) {
        if (strcmp(c->skills[i].skill.id, id) == 0) {
            return &c->skills[i];
        }
    }
    return NULL;
}

static bool view_list(struct arena *arena, const char *const *from, struct str **ret,
                      uint32_t *ret_n)
{
    uint32_t n = 0;

    while (from[n] != NULL) {
        n++;
    }
    *ret = arena_alloc(arena, (n + 1u) * sizeof **ret);
    for (uint32_t i = 0; i < n && *ret != NULL; i++) {
        (*ret)[i] = str_from(from[i]);
    }
    *ret_n = n;
    return *ret != NULL;
}

enum bt_code card_view(const struct card *c, struct arena *arena, struct msg_card *ret,
                       struct bt_error *err)
{
    *ret = c->msg;
    ret->skills_n = c->skills_n;
    ret->skills = arena_alloc(arena, (c->skills_n + 1) * sizeof *ret->skills);
    for (uint32_t i = 0; i < c->skills_n && ret->skills != NULL; i++) {
        const struct card_skill *from = &c->skills[i];
        struct msg_skill *to = &ret->skills[i];
        *to = (struct msg_skill){.id = str_from(from->skill.id),
                                 .name = str_from(from->skill.name),
                                 .description = str_from(from->skill.description),
                                 .input_schema = from->input,
                                 .output_schema = from->output,
                                 .effects = str_from(from->skill.effects),
                                 .max_ms = from->skill.max_ms};
        if (!view_list(arena, from->skill.tags, &to->tags, &to->tags_n) ||
            !view_list(arena, from->skill.examples, &to->examples, &to->examples_n)) {
            return err_set(err, BT_NOMEM, "out of memory for a card");
        }
    }
    return ret->skills == NULL ? err_set(err, BT_NOMEM, "out of memory for a card") : BT_OK;
}
