#include "agents/sdk/shards/shards.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/shard.h"
#include "protocol/client/fleet_map.h"
#include "protocol/client/seeds.h"

enum { PORT_MAX = 65535, PATH_BYTES = 4096, BASE = 10, STATUS_CRASHED = 70 };

static sem_t *places; /* shared by the processes; NULL: one shard */

/* ---- places ---- */

bool shards_place_take(void)
{
    int code = 0;

    do {
        code = places != NULL ? sem_trywait(places) : 0;
    } while (code != 0 && errno == EINTR);
    return code == 0;
}

void shards_place_put(void)
{
    if (places != NULL) {
        (void)sem_post(places);
    }
}

/* ---- the options of one shard ---- */

/* Each address with a port that is higher by the number of the shard. */
static enum bt_code shift(const char *list, uint32_t n, uint32_t shard, char **ret,
                          struct bt_error *err)
{
    char url[STATE_URL_MAX + 1];
    struct buf out;
    size_t len;
    enum bt_code code;

    buf_init(&out, SEEDS_TEXT_MAX + SEEDS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        char *colon;
        unsigned long port;
        char text[16];
        seeds_get(list, i, url);
        colon = strrchr(url, ':');
        port = strtoul(colon + 1, NULL, BASE) + shard;
        if (port > PORT_MAX) {
            buf_done(&out);
            return err_set(err, BT_INVALID, "--connect %s: shard %u would have port %lu", url,
                           shard, port);
        }
        (void)snprintf(text, sizeof text, ":%lu", port);
        *colon = 0;
        buf_add_cstr(&out, i > 0 ? "," : "");
        buf_add_cstr(&out, url);
        buf_add_cstr(&out, text);
    }
    (void)buf_cstr(&out);
    code = buf_check(&out, err);
    *ret = code == BT_OK ? (char *)buf_take(&out, &len) : NULL;
    buf_done(&out);
    return code;
}

/* The strings live as long as the process. */
static enum bt_code become(struct options *o, uint32_t shard, struct bt_error *err)
{
    struct buf dir;
    char *text = NULL;
    char path[PATH_BYTES + 32];
    enum bt_code code = BT_OK;

    o->shard = shard;
    if (o->connect != NULL) {
        code = shift(o->connect, o->seeds, shard, &text, err);
        o->connect = text;
        return code;
    }
    buf_init(&dir, PATH_BYTES);
    code = state_dir_find(o->state, &dir, err);
    if (code == BT_OK) {
        (void)snprintf(path, sizeof path, "%s/shards/%u", buf_cstr(&dir), shard);
        text = strdup(path);
        o->state = text;
        o->fleet = strdup(buf_cstr(&dir));
        code = text == NULL || o->fleet == NULL
                   ? err_set(err, BT_NOMEM, "out of memory for --shards")
                   : BT_OK;
    }
    buf_done(&dir);
    return code;
}

/* ---- another node ---- */

/* By the file that the node writes. A node with an address for other hosts may be on one. Where
 * `auth` is required there is no bus, and the token of this process is not taken. */
bool shards_elsewhere(const struct options *o, char *ret)
{
    char path[PATH_BYTES + 32];
    struct fleet_place at;
    struct buf map;
    bool found;

    if (o->fleet == NULL) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%.4000s/" FLEET_MAP_FILE, o->fleet);
    found = fleet_map_read(path, &map) && fleet_map_shard(doc_from_buf(&map), o->shard, &at) &&
            !at.here && at.remote.len == 0 && at.events.len > 0 && at.control.len > 0 &&
            at.control.len <= STATE_URL_MAX;
    if (found) {
        (void)snprintf(ret, STATE_URL_MAX + 1, "%.*s", STR_ARG(at.control));
    }
    buf_done(&map);
    return found;
}

/* ---- the parent ---- */

static pid_t children[SHARDS_MAX];
static uint32_t children_n;

static void pass_on(int signo)
{
    const int saved = errno;

    for (uint32_t i = 0; i < children_n; i++) {
        if (children[i] > 0) {
            (void)kill(children[i], signo);
        }
    }
    errno = saved;
}

/* Ends with its children: all of them, when one has ended by itself. */
_Noreturn static void wait_for_all(void)
{
    struct sigaction action = {.sa_handler = pass_on};
    int code = 0;
    int status;
    pid_t pid;

    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    for (;;) {
        pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        if (pid < 0) {
            break;
        }
        for (uint32_t i = 0; i < children_n; i++) {
            children[i] = children[i] == pid ? 0 : children[i];
        }
        if (code == 0) {
            code = WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_CRASHED;
        }
        pass_on(SIGTERM);
    }
    (void)fflush(NULL);
    _exit(code);
}

enum bt_code shards_begin(struct options *o, uint32_t capacity, struct bt_error *err)
{
    const pid_t self = getpid();
    void *shared;

    if (o->shards < 2) {
        return BT_OK;
    }
    shared = mmap(NULL, sizeof *places, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || sem_init(shared, 1, capacity) != 0) {
        return err_errno(err, errno, "no memory that processes share");
    }
    places = shared;
    (void)fflush(NULL);
    for (uint32_t i = 0; i < o->shards; i++) {
        children[i] = fork();
        if (children[i] < 0) {
            const int why = errno;
            pass_on(SIGKILL);
            return err_errno(err, why, "fork");
        }
        if (children[i] == 0) {
            if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != self) {
                _exit(STATUS_CRASHED);
            }
            return become(o, i, err);
        }
        children_n = i + 1;
    }
    wait_for_all();
}
