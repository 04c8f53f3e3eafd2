/* A directory of a test, with all in it. */
#ifndef TESTS_TREE_H
#define TESTS_TREE_H

#include <ftw.h>
#include <stdio.h>

static inline int tree_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

/* 0, or -1 when something is left. */
static inline int tree_drop(const char *path)
{
    return nftw(path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
#endif
