#include "protocol/base/share.h"

size_t share_fair(const size_t *lens, size_t n, size_t room)
{
    size_t low = 0;
    size_t high = room;

    while (low < high) {
        const size_t mid = low + (high - low + 1) / 2;
        size_t all = 0;
        for (size_t i = 0; i < n && all <= room; i++) {
            all += lens[i] < mid ? lens[i] : mid;
        }
        if (all <= room) {
            low = mid;
        } else {
            high = mid - 1;
        }
    }
    return low;
}
