/* Prints a page with Chromium, in a directory of its own that is removed. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/report/report.h"
#include "agents/sdk/child/child.h"
#include "protocol/base/clock.h"

enum { PATH_BYTES = 512, BROWSER_MS = 60000, GRACE_MS = 2000, OUTPUT_MAX = 256 * 1024 };

static enum bt_code find_browser(const struct report *r, struct buf *path, struct bt_error *err)
{
    static const char *const names[] = {"chromium", "chromium-browser", "google-chrome",
                                        "google-chrome-stable"};
    const char *list = getenv("PATH");

    list = list != NULL ? list : "/usr/local/bin:/usr/bin:/bin";
    if (r->browser != NULL) {
        if (child_find(r->browser, list, path, NULL) == BT_OK &&
            access(buf_cstr(path), X_OK) == 0) {
            return BT_OK;
        }
        return err_set(err, BT_NOT_FOUND,
                       "settings.browser: '%.200s' is not there, or is no program: a PDF needs "
                       "Chromium",
                       r->browser);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        buf_clear(path);
        if (child_find(names[i], list, path, NULL) == BT_OK) {
            return BT_OK;
        }
    }
    return err_set(err, BT_NOT_FOUND,
                   "a PDF needs Chromium, and PATH has none: install the package chromium, or set "
                   "browser in the agent's settings; format html needs none");
}

static enum bt_code write_file(const char *path, const struct buf *content, struct bt_error *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t at = 0;

    if (fd < 0) {
        return err_errno(err, errno, "%s", path);
    }
    while (at < content->len) {
        const ssize_t n = write(fd, content->at + at, content->len - at);
        if (n < 0 && errno != EINTR) {
            const enum bt_code code = err_errno(err, errno, "%s", path);
            (void)close(fd);
            return code;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    return close(fd) == 0 ? BT_OK : err_errno(err, errno, "%s", path);
}

static enum bt_code read_whole(const char *path, struct buf *out, struct bt_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;

    if (fd < 0) {
        return err_set(err, BT_IO, "the browser wrote no PDF");
    }
    while (n != 0) {
        uint8_t block[65536];
        n = read(fd, block, sizeof block);
        if (n < 0 && errno != EINTR) {
            (void)close(fd);
            return err_errno(err, errno, "%s", path);
        }
        buf_add(out, block, n > 0 ? (size_t)n : 0);
    }
    (void)close(fd);
    return buf_check(out, err);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

static bool is_cancelled(void *step)
{
    return bt_step_cancelled(step);
}

static enum bt_code judge(const struct child_result *done, struct bt_error *err)
{
    switch (done->end) {
    case CHILD_TIMEOUT:
        return err_set(err, BT_TIMEOUT, "the browser did not print the page in %d s",
                       BROWSER_MS / 1000);
    case CHILD_STOPPED:
        return err_set(err, BT_CANCELLED, "cancelled while the browser printed the page");
    case CHILD_EXITED:
        if (done->exit_code == 0) {
            return BT_OK;
        }
        break;
    case CHILD_SIGNALLED:
    case CHILD_TOO_LARGE:
    case CHILD_REFUSED:
        break;
    }
    return err_set(err, BT_IO, "the browser failed (%s %d): %.300s",
                   done->end == CHILD_SIGNALLED ? "signal" : "exit code",
                   done->end == CHILD_SIGNALLED ? done->signal : done->exit_code,
                   done->last_line[0] != 0 ? done->last_line : "without a word");
}

static enum bt_code run_browser(struct bt_step *step, const char *browser, const char *dir,
                                struct bt_error *err)
{
    char profile[PATH_BYTES];
    char target[PATH_BYTES];
    char page[PATH_BYTES];
    char home[PATH_BYTES];
    char *argv[] = {(char *)(uintptr_t)browser,
                    (char *)(uintptr_t) "--headless",
                    (char *)(uintptr_t) "--disable-gpu",
                    (char *)(uintptr_t) "--disable-dev-shm-usage",
                    (char *)(uintptr_t) "--disable-extensions",
                    (char *)(uintptr_t) "--disable-background-networking",
                    (char *)(uintptr_t) "--no-first-run",
                    (char *)(uintptr_t) "--no-pdf-header-footer",
                    (char *)(uintptr_t) "--host-resolver-rules=MAP * ~NOTFOUND",
                    profile,
                    target,
                    page,
                    NULL, /* --no-sandbox */
                    NULL};
    char *envp[] = {home, (char *)(uintptr_t) "PATH=/usr/local/bin:/usr/bin:/bin",
                    (char *)(uintptr_t) "LANG=C.UTF-8", NULL};
    const uint64_t left = bt_step_time_left_ms(step);
    struct child_spec spec = {.path = browser,
                              .argv = argv,
                              .envp = envp,
                              .cwd = dir,
                              .output_max = OUTPUT_MAX,
                              .grace_ms = GRACE_MS,
                              .stop = is_cancelled,
                              .self = step};
    struct child_result done = {0};
    enum bt_code code;

    (void)snprintf(profile, sizeof profile, "--user-data-dir=%s/profile", dir);
    (void)snprintf(target, sizeof target, "--print-to-pdf=%s/report.pdf", dir);
    (void)snprintf(page, sizeof page, "file://%s/report.html", dir);
    (void)snprintf(home, sizeof home, "HOME=%s", dir);
    if (geteuid() == 0) {
        /* Chromium refuses root with its sandbox. The page is of our making, without scripts. */
        argv[sizeof argv / sizeof argv[0] - 2] = (char *)(uintptr_t) "--no-sandbox";
    }
    spec.deadline = clock_mono_ms() + (left < BROWSER_MS ? left : BROWSER_MS);
    code = child_run(&spec, &done, err);
    code = code == BT_OK ? judge(&done, err) : code;
    child_result_done(&done);
    return code;
}

enum bt_code pdf_print(struct bt_step *step, const struct report *r, const struct buf *html,
                       struct buf *ret_pdf, struct bt_error *err)
{
    const char *tmp = getenv("TMPDIR");
    char dir[PATH_BYTES / 2];
    char file[PATH_BYTES];
    struct buf browser;
    enum bt_code code;

    buf_init(&browser, PATH_BYTES * 8);
    code = find_browser(r, &browser, err);
    (void)snprintf(dir, sizeof dir, "%s/baton-report-XXXXXX",
                   tmp != NULL && tmp[0] == '/' && strlen(tmp) < 200 ? tmp : "/tmp");
    if (code == BT_OK && mkdtemp(dir) == NULL) {
        code = err_errno(err, errno, "%s", dir);
        dir[0] = 0;
    }
    if (code == BT_OK) {
        (void)snprintf(file, sizeof file, "%s/report.html", dir);
        code = write_file(file, html, err);
        code = code == BT_OK ? run_browser(step, buf_cstr(&browser), dir, err) : code;
        (void)snprintf(file, sizeof file, "%s/report.pdf", dir);
        code = code == BT_OK ? read_whole(file, ret_pdf, err) : code;
        (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    buf_done(&browser);
    return code;
}
