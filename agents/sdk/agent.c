/* The program around an agent's definition: arguments, settings, --once, --card, serving. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/sdk/loop/program.h"
#include "agents/sdk/runtime.h"
#include "agents/sdk/shards/shards.h"
#include "agents/sdk/step.h"
#include "protocol/base/hide.h"

struct bt_agent_init {
    struct card *card;
    struct options *opt;
    struct arena texts;
};

/* ---- for init() ---- */

static struct doc setting(const struct bt_agent_init *init, const char *path)
{
    return doc_path(doc_from_buf(&init->opt->settings_doc), str_from(path));
}

const char *bt_agent_settings_json(const struct bt_agent_init *init)
{
    return (const char *)init->opt->settings_json.at; /* terminated by prepare */
}

const char *bt_agent_setting_string(const struct bt_agent_init *init, const char *path,
                                    const char *fallback)
{
    struct doc d = setting(init, path);
    union {
        const struct bt_agent_init *from;
        struct bt_agent_init *to;
    } mutable = {.from = init}; /* the copies that it keeps do not change what init shows */
    const char *kept = NULL;

    if (d.ptr != NULL && doc_head(d).kind == DOC_STR) {
        kept = arena_str(&mutable.to->texts, doc_string(d)).ptr;
    }
    return kept != NULL ? kept : fallback;
}

double bt_agent_setting_number(const struct bt_agent_init *init, const char *path, double fallback)
{
    const struct doc_head h = doc_head(setting(init, path));

    return h.kind == DOC_FLOAT  ? h.f
           : h.kind == DOC_INT  ? (double)h.i
           : h.kind == DOC_UINT ? (double)h.u
                                : fallback;
}

bool bt_agent_setting_bool(const struct bt_agent_init *init, const char *path, bool fallback)
{
    const struct doc_head h = doc_head(setting(init, path));

    return h.kind == DOC_BOOL ? h.b : fallback;
}

const char *bt_agent_secret(const struct bt_agent_init *init, const char *name)
{
    return handover_secret(&init->opt->handover, name);
}

enum bt_code bt_agent_add_skill(struct bt_agent_init *init, const struct bt_skill *skill,
                                struct bt_error *err)
{
    return card_add(init->card, skill, err);
}

enum bt_code bt_agent_set_id(struct bt_agent_init *init, const char *agent_id, struct bt_error *err)
{
    return card_set_id(init->card, agent_id, err);
}

/* ---- the program ---- */

static enum bt_code prepare(const struct bt_agent_def *def, struct options *opt, struct card *card,
                            void **ret_self, struct bt_error *err)
{
    struct bt_agent_init init = {.card = card, .opt = opt};
    enum bt_code code = card_init(card, def, err);

    (void)buf_cstr(&opt->settings_json);
    log_setup(opt->log_level, NULL, NULL);
    if (code == BT_OK && def->init != NULL) {
        code = def->init(&init, ret_self, err);
        if (code != BT_OK) {
            (void)err_wrap(err, "settings");
        }
    }
    arena_done(&init.texts);
    handover_wipe(&opt->handover);
    if (code == BT_OK && opt->agent_id != NULL) {
        code = card_set_id(card, opt->agent_id, err);
    }
    return code == BT_OK ? card_check_complete(card, err) : code;
}

static enum bt_code print_json(const struct buf *json, struct bt_error *err)
{
    if (fwrite(json->at, 1, json->len, stdout) != json->len || putchar('\n') == EOF ||
        fflush(stdout) != 0) {
        return err_set(err, BT_IO, "the output could not be written");
    }
    return BT_OK;
}

static enum bt_code print_card(const struct card *card, struct bt_error *err)
{
    struct msg_card view;
    struct msg_part part = {MSG_card, &view};
    struct arena arena = {0};
    struct buf out;
    enum bt_code code = card_view(card, &arena, &view, err);

    buf_init(&out, LIMIT_CONTROL_BYTES);
    if (code == BT_OK) {
        code = msg_write(&out, WIRE_JSON, &part, 1, err);
    }
    if (code == BT_OK) {
        code = print_json(&out, err);
    }
    buf_done(&out);
    arena_done(&arena);
    return code;
}

static enum bt_code read_stdin(struct buf *ret, struct bt_error *err)
{
    char chunk[4096];
    size_t n;

    while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0) {
        buf_add(ret, chunk, n);
    }
    return ferror(stdin) ? err_set(err, BT_IO, "reading stdin") : buf_check(ret, err);
}

/* One step from stdin. *ret_status 1 when it did not complete. */
static enum bt_code run_once(const struct card *card, const char *skill, void *self,
                             int *ret_status, struct bt_error *err)
{
    const struct card_skill *how = card_find(card, skill);
    struct bt_step *step = NULL;
    struct buf in;
    struct buf out;
    enum bt_code code;

    buf_init(&in, LIMIT_STEP_BYTES);
    buf_init(&out, LIMIT_STEP_BYTES * 2);
    code = how == NULL ? err_set(err, BT_NOT_FOUND,
                                 "--once %s: this agent has no such skill; see --card", skill)
                       : read_stdin(&in, err);
    if (code == BT_OK) {
        code = step_new_from_json(buf_str(&in), how->skill.id, &step, err);
    }
    if (code == BT_OK) {
        step->card_skill = how;
        step->self = self;
        step_run(step);
        *ret_status = step->reply.outcome == REPLY_COMPLETED ? 0 : 1;
        code = step_reply_json(step, &out, err);
    }
    if (code == BT_OK) {
        code = print_json(&out, err);
    }
    step_free(step);
    buf_done(&in);
    buf_done(&out);
    return code;
}

static void print_help(const struct bt_agent_def *def, const char *program)
{
    (void)printf("%s: a Baton agent%s%s\n\nUsage: %s [OPTION]...\n%s", program,
                 def->description != NULL ? ". " : "",
                 def->description != NULL ? def->description : "", program, options_help());
}

uint32_t program_capacity(const struct program *p)
{
    uint32_t capacity = p->opt.capacity > 0    ? p->opt.capacity
                        : p->def->capacity > 0 ? p->def->capacity
                                               : 1;

    return capacity > LIMIT_CAPACITY ? LIMIT_CAPACITY : capacity;
}

enum bt_code program_begin(struct program *p, const struct bt_agent_def *def, int argc, char **argv,
                           bool shards, struct bt_error *err)
{
    const char *name = argc > 0 ? argv[0] : "agent";
    enum bt_code code;

    *p = (struct program){.def = def};
    hide_process();
    code = options_read(&p->opt, argc, argv, err);
    if (code == BT_OK && p->opt.shards > 1 && !shards && p->opt.spawned) {
        p->opt.shards = 1; /* its node sets BATON_SHARDS for whoever can */
    }
    if (code == BT_OK && p->opt.shards > 1 && p->opt.mode == OPTIONS_RUN) {
        code = shards ? shards_begin(&p->opt, program_capacity(p), err)
                      : err_set(err, BT_INVALID,
                                "--shards: a program with a loop of its own serves one shard: "
                                "start it once for each");
    }
    if (code == BT_OK && p->opt.mode == OPTIONS_HELP) {
        print_help(def, name);
    } else if (code == BT_OK && p->opt.mode == OPTIONS_VERSION) {
        (void)printf("%s %s (baton %s)\n", name, def->version != NULL ? def->version : "0",
                     BATON_VERSION);
    } else if (code == BT_OK) {
        code = prepare(def, &p->opt, &p->card, &p->self, err);
        p->made = code == BT_OK;
        if (code == BT_OK && p->opt.mode == OPTIONS_CARD) {
            code = print_card(&p->card, err);
        }
    }
    return code;
}

void program_end(struct program *p)
{
    if (p->made && p->def->done != NULL) {
        p->def->done(p->self);
    }
    card_done(&p->card);
    options_done(&p->opt);
}

static enum bt_code serve(struct program *p, struct bt_error *err)
{
    const struct runtime_how how = {.opt = &p->opt,
                                    .card = &p->card,
                                    .self = p->self,
                                    .done = p->def->done,
                                    .capacity = program_capacity(p)};
    struct runtime *rt;
    enum bt_code code = runtime_new(&how, &rt, err);

    if (code == BT_OK) {
        runtime_run(rt);
    }
    return code;
}

int bt_agent_main(const struct bt_agent_def *def, int argc, char **argv)
{
    struct program p;
    struct bt_error err = {.code = BT_OK};
    int status = 0;
    enum bt_code code = program_begin(&p, def, argc, argv, true, &err);

    if (code == BT_OK && p.opt.mode == OPTIONS_ONCE) {
        code = run_once(&p.card, p.opt.once_skill, p.self, &status, &err);
    } else if (code == BT_OK && p.opt.mode == OPTIONS_RUN) {
        code = serve(&p, &err);
    }
    if (code != BT_OK) {
        (void)fprintf(stderr, "%s: %s\n", argc > 0 ? argv[0] : "agent", err.msg);
        status = p.made && p.opt.mode != OPTIONS_RUN && code == BT_IO ? 1 : 2; /* it was printed */
    }
    program_end(&p);
    return status;
}
