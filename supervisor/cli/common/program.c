#include "supervisor/cli/common/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_executable(const char *file)
{
    struct stat st;

    return access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode);
}

bool cli_program_is_there(const char *program)
{
    const char *path = getenv("PATH");

    if (strchr(program, '/') != NULL) {
        return is_executable(program);
    }
    while (path != NULL && *path != 0) {
        const int n = (int)strcspn(path, ":");
        char file[4096];
        (void)snprintf(file, sizeof file, "%.*s/%s", n, path, program);
        if (is_executable(file)) {
            return true;
        }
        path += n + (path[n] == ':');
    }
    return false;
}

bool cli_program_beside(const char *name, char *ret, size_t cap)
{
    const ssize_t n = readlink("/proc/self/exe", ret, cap - strlen(name));
    char *slash = n > 0 ? memrchr(ret, '/', (size_t)n) : NULL;

    if (slash == NULL) {
        (void)snprintf(ret, cap, "/proc/self/exe: %s", strerror(errno));
        return false;
    }
    memcpy(slash + 1, name, strlen(name) + 1);
    return true;
}
