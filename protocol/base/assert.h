/* ASSERT is on in every build and is for programmer errors only. Input never triggers it. */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

_Noreturn void assert_failed(const char *file, int line, const char *what);

#define ASSERT(cond) ((cond) ? (void)0 : assert_failed(__FILE__, __LINE__, #cond))

/* DEBUG_ASSERT is on in debug builds: for checks that are too many for a release. */
#ifdef BATON_CHECKED
#define DEBUG_ASSERT(cond) ASSERT(cond)
#else
#define DEBUG_ASSERT(cond) ((void)sizeof((cond) ? 1 : 0))
#endif
#endif
