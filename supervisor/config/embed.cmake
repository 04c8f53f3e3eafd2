# cmake -DIN=file -DOUT=file.c -DNAME=symbol -P embed.cmake: a file as bytes of the program.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1,\n" bytes "${hex}")
file(WRITE ${OUT} "/* Made from ${NAME} by embed.cmake. */
#include \"supervisor/config/embedded.h\"

const unsigned char ${NAME}[] = {\n${bytes}};
const size_t ${NAME}_len = sizeof ${NAME};
")
