/* Copies a directory: first its list, then its files. One thread. */
#ifndef CLI_COPY_H
#define CLI_COPY_H

#include <stdbool.h>
#include <stddef.h>

struct copy_entry {
    char *path; /* below the directory: "data/a.csv"; a directory comes before what is in it */
    bool is_dir;
    bool is_program;
    bool made; /* by copy_tree */
};

struct copy_list {
    struct copy_entry *at;
    size_t n;
    size_t there; /* of the path of the copy: the bytes that copy_tree found there */
};

/*
 * Lists the files and directories in `dir`, in alphabetical order; with `deep` also those below.
 * Links, and names that begin with a dot, are left out. Prints the error and returns false. Free
 * with copy_list_free in any case.
 */
bool copy_list_read(const char *dir, bool deep, struct copy_list *ret);
void copy_list_free(struct copy_list *list);
/* Makes `to` with its missing parents, and copies what is listed. Overwrites nothing. Prints the
 * error and returns false; what was copied until then stays, until copy_tree_remove. */
bool copy_tree(const char *from, const char *to, struct copy_list *list);
/* Removes what copy_tree made of `to`, its parents too. What is in its directories besides stays.
 * Returns whether there was anything. */
bool copy_tree_remove(const char *to, const struct copy_list *list);
#endif
