/* A tree of files below a directory of its own, for the tests of the files agent. */
#ifndef TEST_FILES_WORLD_H
#define TEST_FILES_WORLD_H

#include "tests/unit/agents/steps.h"

#include "agents/files/files.h"

/* The directory ("/tmp/..."): in/ is a readable root, out/ a writable one, outside/ neither. */
extern char tree[64];
extern struct files *tree_files;

/* Setup and teardown of a group. */
int tree_make(void **state);
int tree_remove(void **state);
/* Writes a file below the tree. */
void tree_put(const char *name, const void *bytes, size_t n);
void tree_text(const char *name, const char *text);
/* The bytes of a file below the tree, terminated; valid until the next call. */
const char *tree_get(const char *name);
/* How many names a directory of the tree has. */
int tree_count(const char *name);
/* Runs a skill; every "@" in the JSON is replaced by the tree's directory. Returns the reply as
 * JSON. */
const char *tree_run(bt_skill_run run, const char *json);
/* Fails the test unless the reply is a failure of this class with these words. */
void tree_fails(const char *reply, const char *class, const char *words);
#endif
