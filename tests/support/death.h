/* Programmer errors that must end the process. */
#ifndef TESTS_DEATH_H
#define TESTS_DEATH_H

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls f in a child process; whether an assertion ended it. */
static inline bool dies(void (*f)(void))
{
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0) {
        (void)close(STDERR_FILENO); /* the sentence is expected */
        f();
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}
#endif
