#include "agents/files/glob.h"

#include <stddef.h>

/* Matches c against the set at *at (after its "[") and moves *at after its "]". False when the set
 * has no end. */
static bool match_set(const char **at, unsigned char c, bool *ret_in)
{
    const char *p = *at;
    bool negated = *p == '!' || *p == '^';
    bool in = false;
    const char *first;

    p += negated;
    for (first = p; *p != 0 && (*p != ']' || p == first); p++) {
        unsigned char low = (unsigned char)*p;
        if (p[1] == '-' && p[2] != 0 && p[2] != ']') {
            p += 2;
        }
        in = in || (low <= c && c <= (unsigned char)*p);
    }
    if (*p != ']') {
        return false;
    }
    *at = p + 1;
    *ret_in = in != negated;
    return true;
}

/* Matches one character of the pattern against one of the name. Advances both on a match. */
static bool match_one(const char **pattern, const char **name)
{
    const char *p = *pattern;
    bool in;

    if (*p == '?') {
        p++;
        do { /* a character is all its bytes */
            (*name)++;
        } while (((unsigned char)**name & 0xc0) == 0x80);
        *pattern = p;
        return true;
    }
    if (*p == '[') {
        p++;
        if (match_set(&p, (unsigned char)**name, &in)) {
            if (in) {
                (*name)++;
                *pattern = p;
            }
            return in;
        }
    }
    if (**pattern != **name) {
        return false;
    }
    (*pattern)++;
    (*name)++;
    return true;
}

bool glob_match(const char *pattern, const char *name)
{
    const char *star = NULL; /* after the last star: only this one needs another try */
    const char *retry = NULL;

    while (*name != 0) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (!match_one(&pattern, &name)) {
            if (star == NULL) {
                return false;
            }
            pattern = star;
            name = ++retry;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == 0;
}
