/* A home directory per test, with its files and a clean environment. */
#ifndef TESTS_CONFIG_TEST_H
#define TESTS_CONFIG_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "supervisor/config/config.h"

struct home {
    char dir[64];
    char user[128];   /* the user's file, by the XDG rule */
    char system[128]; /* replaces /etc/baton/baton.yaml */
    struct config_request request;
    struct buf notes;
    struct bt_error err;
    struct config *config;
};

extern char **environ;

static inline void forget_environment(void)
{
    for (char **at = environ; *at != NULL;) {
        char name[80];
        size_t n = strcspn(*at, "=");
        if (strncmp(*at, "BATON_", 6) == 0 && n < sizeof name &&
            strncmp(*at, "BATON_WRITE=", 12) != 0) { /* of the tests */
            memcpy(name, *at, n);
            name[n] = '\0';
            assert_int_equal(unsetenv(name), 0);
        } else {
            at++;
        }
    }
}

static inline int home_open(void **state)
{
    struct home *h = calloc(1, sizeof *h);
    char baton[96];

    assert_non_null(h);
    forget_environment();
    (void)snprintf(h->dir, sizeof h->dir, "/tmp/baton-config-XXXXXX");
    assert_non_null(mkdtemp(h->dir));
    (void)snprintf(baton, sizeof baton, "%s/baton", h->dir);
    assert_int_equal(mkdir(baton, 0700), 0);
    (void)snprintf(h->user, sizeof h->user, "%s/baton/baton.yaml", h->dir);
    (void)snprintf(h->system, sizeof h->system, "%s/system.yaml", h->dir);
    assert_int_equal(setenv("XDG_CONFIG_HOME", h->dir, 1), 0);
    assert_int_equal(setenv("XDG_STATE_HOME", h->dir, 1), 0);
    h->request = (struct config_request){.system_file = h->system, .bin_dir = "/opt/baton/bin"};
    buf_init(&h->notes, 1 << 20);
    *state = h;
    return 0;
}

static inline void forget_config(struct home *h)
{
    config_free(h->config);
    h->config = NULL;
    buf_clear(&h->notes);
}

static inline int home_close(void **state)
{
    struct home *h = *state;
    char path[128];

    forget_config(h);
    buf_done(&h->notes);
    (void)unlink(h->user);
    (void)unlink(h->system);
    (void)snprintf(path, sizeof path, "%s/other.yaml", h->dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/baton", h->dir);
    (void)rmdir(path);
    (void)rmdir(h->dir);
    free(h);
    return 0;
}

static inline void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static inline enum bt_code load(struct home *h)
{
    forget_config(h);
    return config_load(&h->request, &h->config, &h->notes, &h->err);
}

static inline void expect_loads(struct home *h)
{
    if (load(h) != BT_OK) {
        fail_msg("%s", h->err.msg);
    }
}

/* Compares the notes, with the directory of the test written as DIR. */
static inline void expect_notes(struct home *h, const char *notes)
{
    char *got = strdup(buf_cstr(&h->notes));
    size_t n = strlen(h->dir);

    assert_non_null(got);
    for (char *at = strstr(got, h->dir); at != NULL; at = strstr(at, h->dir)) {
        memcpy(at, "DIR", 3);
        memmove(at + 3, at + n, strlen(at + n) + 1);
    }
    assert_string_equal(got, notes);
    free(got);
}

static inline void expect_problems(struct home *h, const char *notes)
{
    assert_int_equal(load(h), BT_INVALID);
    assert_null(h->config);
    expect_notes(h, notes);
}

static inline const struct config_entry *entry(const struct home *h, const char *key)
{
    uint32_t n;
    const struct config_entry *all = config_entries(h->config, &n);

    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(all[i].key, key) == 0) {
            return &all[i];
        }
    }
    fail_msg("no entry %s", key);
    return NULL;
}
#endif
