#include "protocol/base/glob.h"

/* Each "*" first stands for nothing; after a mismatch the last one takes one more character. */
bool glob_fits(struct str glob, struct str text)
{
    size_t g = 0;
    size_t t = 0;
    size_t star = SIZE_MAX;
    size_t from = 0;
    while (t < text.len) {
        if (g < glob.len && glob.ptr[g] == '*') {
            star = g++;
            from = t;
        } else if (g < glob.len && (glob.ptr[g] == '?' || glob.ptr[g] == text.ptr[t])) {
            g++;
            t++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.ptr[g] == '*') {
        g++;
    }
    return g == glob.len;
}
