#include "supervisor/cli/verbs/storage/carried.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/wire/base64.h"
#include "protocol/wire/doc.h"
#include "protocol/wire/mp_validate.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/remote.h"
#include "supervisor/cli/verbs/storage/lines.h"

enum { BLOB_BYTES = 32 * 1024 * 1024, CHUNK = 256 * 1024, PLACE_BYTES = 300 };

struct carried_file {
    struct artifact_place at;
    uint64_t bytes;
    char sha256[ARTIFACT_SHA256_LEN + 1];
};

/* The daemon's directory. False: this fleet has several. */
static bool find_here(struct carried *c, const char *state)
{
    (void)snprintf(c->here, sizeof c->here, "%s/fleet.json", state);
    if (access(c->here, F_OK) == 0) {
        c->here[0] = 0;
        return false;
    }
    (void)snprintf(c->here, sizeof c->here, "%s/" ARTIFACT_DIR, state);
    return true;
}

static enum cli_exit check_dir(const char *dir, const char *expected)
{
    struct stat st;
    const int why = stat(dir, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;

    if (why == 0) {
        return CLI_OK;
    }
    cli_error("--artifacts: %s: %s; expected %s", dir, strerror(why), expected);
    return CLI_USAGE;
}

enum cli_exit carried_begin(struct carried *c, struct cli *cli, bool out)
{
    const char *dir = cli_value(cli, "artifacts");
    const bool elsewhere = cli_elsewhere(cli) != NULL;
    const char *state = (dir == NULL && out) || elsewhere ? NULL : cli_state_dir(cli);

    *c = (struct carried){.arena = {.max = (size_t)1 << 30}};
    buf_init(&c->blob, BLOB_BYTES);
    if (dir != NULL && elsewhere) {
        cli_error("--artifacts: the files are in the state directory of the daemon: use it on its "
                  "host");
        return CLI_USAGE;
    }
    if (dir == NULL && (out || elsewhere)) {
        return CLI_OK;
    }
    if (state == NULL) {
        return CLI_USAGE;
    }
    if (!find_here(c, state) && dir != NULL) {
        cli_error("--artifacts: this fleet has several shards, and each has a directory of its own "
                  "for files: leave --artifacts out");
        return CLI_USAGE;
    }
    if (dir == NULL) {
        return CLI_OK;
    }
    if (!out && check_dir(dir, "the directory of: baton export --artifacts") != CLI_OK) {
        return CLI_USAGE;
    }
    c->from = out ? c->here : dir;
    c->to = out ? dir : c->here;
    if (mkdir(c->to, 0700) != 0 && errno != EEXIST) {
        cli_error("%s: %s", c->to, strerror(errno));
        return CLI_USAGE;
    }
    return check_dir(c->to, "a directory");
}

/* ---- what the results name ---- */

static bool no_memory(void)
{
    cli_error("out of memory for the files of results");
    return false;
}

static bool remember(struct carried *c, struct map *set, struct str key)
{
    struct str kept;

    if (map_get(set, key) != MAP_NONE) {
        return true;
    }
    kept = arena_str(&c->arena, key);
    return kept.ptr != NULL && map_put(set, kept, 1) == BT_OK;
}

static bool add_file(struct carried *c, struct doc map)
{
    const struct doc bytes = doc_get(map, STR_LIT("bytes"));
    const struct str sum = doc_string(doc_get(map, STR_LIT("sha256")));
    struct artifact_place at;

    if (sum.len != ARTIFACT_SHA256_LEN || bytes.ptr == NULL || doc_head(bytes).kind != DOC_UINT ||
        !artifact_was(doc_string(doc_get(map, STR_LIT("uri"))), &at)) {
        return true;
    }
    if (c->n == c->cap) {
        const uint32_t cap = c->cap == 0 ? 16 : c->cap * 2;
        struct carried_file *more = realloc(c->files, cap * sizeof *more);
        if (more == NULL) {
            return no_memory();
        }
        c->files = more;
        c->cap = cap;
    }
    c->files[c->n] = (struct carried_file){.at = at, .bytes = doc_head(bytes).u};
    memcpy(c->files[c->n++].sha256, sum.ptr, sum.len);
    return true;
}

/* The files at any place of a result, which mp_validate took: the result of a forEach has those of
 * its items. */
static bool find_files(struct carried *c, struct doc d)
{
    struct doc_cursor at = doc_cursor(d);
    struct doc_head head;
    bool good = true;

    if (!doc_next(&at, &head) || (head.kind != DOC_MAP && head.kind != DOC_ARRAY)) {
        return true;
    }
    good = head.kind != DOC_MAP || add_file(c, d);
    for (uint32_t i = 0; i < head.n && good; i++) {
        if (head.kind == DOC_MAP) {
            (void)doc_skip(&at);
        }
        good = find_files(c, doc_skip(&at));
    }
    return good;
}

/* A part of a result; the last one completes it. */
static bool add_part(struct carried *c, const cJSON *line)
{
    const uint64_t n = (uint64_t)json_number(line, "n");
    const uint64_t whole = (uint64_t)json_number(line, "bytes");

    if (n != c->blob_n) {
        buf_clear(&c->blob);
        c->blob_n = n;
    }
    if (json_read_base64(str_from(json_text(line, "data", "")), &c->blob, NULL) != BT_OK ||
        c->blob.len < whole) {
        return true; /* what is wrong with it is the daemon's to say */
    }
    return mp_validate(c->blob.at, c->blob.len, NULL, NULL) != BT_OK ||
           find_files(c, doc_from_buf(&c->blob));
}

bool carried_line(struct carried *c, struct str body)
{
    const bool plan = export_is(body, "plan");
    char *text;
    cJSON *line;
    bool good;

    if ((c->from == NULL && !c->counts) || !(plan || export_is(body, "blob"))) {
        return true;
    }
    text = strndup(body.ptr, body.len);
    line = text == NULL ? NULL : json_tree(text);
    if (plan) {
        carried_forget(c);
        good = remember(c, &c->plans, str_from(json_text(line, "planId", ""))) || no_memory();
    } else {
        good = text != NULL ? add_part(c, line) : no_memory();
    }
    cJSON_Delete(line);
    free(text);
    return good;
}

void carried_forget(struct carried *c)
{
    c->n = 0;
    c->blob_n = 0;
    buf_clear(&c->blob);
}

/* ---- copies ---- */

static enum bt_code copy_bytes(int from, struct artifact_writer *w, struct bt_error *err)
{
    static char bytes[CHUNK];
    enum bt_code code = BT_OK;
    ssize_t n;

    while (code == BT_OK && (n = read(from, bytes, sizeof bytes)) != 0) {
        code = n > 0            ? artifact_write(w, bytes, (size_t)n, err)
               : errno == EINTR ? BT_OK
                                : err_errno(err, errno, "cannot read a file of %s", "a result");
    }
    return code;
}

static enum bt_code copy_file(const struct carried *c, const struct carried_file *f, int from,
                              struct bt_error *err)
{
    const struct artifact_claim claim = {.bytes = f->bytes, .sha256 = str_from(f->sha256)};
    struct artifact_writer *w = NULL;
    char dir[ARTIFACT_PATH_MAX + 1];
    char sum[ARTIFACT_SHA256_LEN + 1];
    uint64_t bytes;
    enum bt_code code;
    int there = -1;

    if (artifact_open(c->to, &f->at, &claim, NULL, NULL, &there, NULL) == BT_OK) {
        (void)close(there); /* as it is to be */
        return BT_OK;
    }
    (void)snprintf(dir, sizeof dir, "%s/%s", c->to, f->at.plan);
    code = artifact_create(dir, f->at.file, &w, err);
    if (code == BT_OK) {
        code = copy_bytes(from, w, err);
        if (code == BT_OK) {
            return artifact_commit(w, &bytes, sum, err);
        }
        artifact_abort(w);
    }
    return code;
}

static bool take_file(struct carried *c, const struct carried_file *f)
{
    const struct artifact_claim claim = {.bytes = f->bytes, .sha256 = str_from(f->sha256)};
    char place[PLACE_BYTES];
    struct bt_error err;
    enum bt_code code;
    int fd = -1;

    (void)snprintf(place, sizeof place, "%s/%s", f->at.plan, f->at.file);
    if (map_get(&c->seen, str_from(place)) != MAP_NONE) {
        return true;
    }
    if (!remember(c, &c->seen, str_from(place)) || !remember(c, &c->named, str_from(f->at.plan))) {
        return no_memory();
    }
    if (c->from == NULL) {
        uint64_t bytes;
        c->missing += c->here[0] == 0 || artifact_stat(c->here, &f->at, &bytes, NULL) != BT_OK;
        return true;
    }
    code = artifact_open(c->from, &f->at, &claim, NULL, NULL, &fd, &err);
    if (code == BT_GONE) {
        c->gone++;
        return true;
    }
    if (code != BT_OK) {
        c->bad++;
        cli_error("%s/%s: %s", c->from, place, err.msg);
        return true;
    }
    c->sound++;
    code = c->to == NULL ? BT_OK : copy_file(c, f, fd, &err);
    (void)close(fd);
    if (code != BT_OK) {
        cli_error("%s/%s: %s", c->to, place, err.msg);
    }
    return code == BT_OK;
}

bool carried_plan(struct carried *c)
{
    bool good = true;

    for (uint32_t i = 0; i < c->n && good; i++) {
        good = take_file(c, &c->files[i]);
    }
    carried_forget(c);
    return good;
}

void carried_again(struct carried *c, const char *to)
{
    carried_forget(c);
    map_done(&c->seen);
    map_done(&c->plans);
    map_done(&c->named);
    arena_reset(&c->arena);
    c->to = to;
    c->counts = c->from == NULL;
    c->sound = c->gone = c->bad = 0;
}

void carried_report(struct carried *c)
{
    if (c->missing > 0) {
        cli_note("%" PRIu64 " file%s of results %s not here: export and import them with "
                 "--artifacts DIR\n",
                 c->missing, c->missing == 1 ? "" : "s", c->missing == 1 ? "is" : "are");
    }
    if (c->from == NULL) {
        return;
    }
    cli_note("%" PRIu64 " file%s of results copied to %s, %" PRIu64 " not kept\n", c->sound,
             c->sound == 1 ? "" : "s", c->to, c->gone);
    for (uint32_t i = 0; i < c->named.cap; i++) {
        const struct str plan = c->named.slots[i].key;
        if (plan.ptr != NULL && map_get(&c->plans, plan) == MAP_NONE) {
            cli_note("some are of the plan %.*s, which is not here: export it, too\n",
                     STR_ARG(plan));
        }
    }
}

void carried_done(struct carried *c)
{
    free(c->files);
    buf_done(&c->blob);
    map_done(&c->seen);
    map_done(&c->plans);
    map_done(&c->named);
    arena_done(&c->arena);
}
