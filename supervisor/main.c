/* batond */
#include <stdio.h>
#include <unistd.h>

#include "supervisor/entry.h"

int main(int argc, char **argv)
{
    const int code = batond_entry(argc, argv);

    (void)fflush(NULL);
    _exit(code); /* sockets are never closed under traffic: the process just ends */
}
