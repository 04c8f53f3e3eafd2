#include "tests/unit/agents/files_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

char tree[64];
struct files *tree_files;

static char held[256 * 1024];

static void path_of(char path[512], const char *name)
{
    (void)snprintf(path, 512, "%s/%s", tree, name);
}

int tree_make(void **state)
{
    char settings[512];
    char path[512];
    static const char *const dirs[] = {"in", "out", "outside"};
    struct bt_error err;

    (void)state;
    (void)snprintf(tree, sizeof tree, "/tmp/baton-test-files-XXXXXX");
    assert_non_null(mkdtemp(tree));
    for (size_t i = 0; i < 3; i++) {
        path_of(path, dirs[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    (void)snprintf(settings, sizeof settings, "{\"roots\":[\"%s/in\"],\"writeRoots\":[\"%s/out\"]}",
                   tree, tree);
    if (files_new(settings, &tree_files, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

int tree_remove(void **state)
{
    (void)state;
    steps_forget();
    files_free(tree_files);
    return nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void tree_put(const char *name, const void *bytes, size_t n)
{
    char path[512];
    int fd;

    path_of(path, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    assert_int_equal(close(fd), 0);
}

void tree_text(const char *name, const char *text)
{
    tree_put(name, text, strlen(text));
}

const char *tree_get(const char *name)
{
    char path[512];
    ssize_t n;
    int fd;

    path_of(path, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    n = read(fd, held, sizeof held - 1);
    assert_true(n >= 0);
    held[n] = 0;
    assert_int_equal(close(fd), 0);
    return held;
}

int tree_count(const char *name)
{
    char path[512];
    DIR *dir;
    int n = 0;

    path_of(path, name);
    dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        n++;
    }
    assert_int_equal(closedir(dir), 0);
    return n - 2;
}

const char *tree_run(bt_skill_run run, const char *json)
{
    struct buf text;
    const char *reply;

    buf_init(&text, LIMIT_CONTROL_BYTES);
    buf_add_cstr(&text, "{\"parameters\":");
    for (; *json != 0; json++) {
        if (*json == '@') {
            buf_add_cstr(&text, tree);
        } else {
            buf_add_byte(&text, (uint8_t)*json);
        }
    }
    buf_add_byte(&text, '}');
    reply = steps_run(steps_make("x", buf_cstr(&text)), run, tree_files);
    buf_done(&text);
    return reply;
}

void tree_fails(const char *reply, const char *class, const char *words)
{
    steps_expect(reply, "\"failed\"");
    steps_expect(reply, class);
    steps_expect(reply, words);
}
