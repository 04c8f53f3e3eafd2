# cmake -DDIR=directory -DNAMES=a;b -DOUT=file.c -P embed.cmake: the files as bytes of the program. @VERSION@ in index.html becomes
# the digest of all of them, which is part of their addresses.
set(all "")
foreach(name IN LISTS NAMES)
    file(SHA256 ${DIR}/${name} sum)
    string(APPEND all "${name} ${sum}\n")
endforeach()
string(SHA256 version "${all}")
string(SUBSTRING "${version}" 0 16 version)

set(arrays "")
set(table "")
set(n 0)
foreach(name IN LISTS NAMES)
    if(name STREQUAL "index.html")
        file(READ ${DIR}/${name} text)
        string(REPLACE "@VERSION@" "${version}" text "${text}")
        file(WRITE ${OUT}.index "${text}")
        file(READ ${OUT}.index hex HEX)
    else()
        file(READ ${DIR}/${name} hex HEX)
    endif()
    if(name MATCHES "[.]js$")
        set(type "text/javascript; charset=utf-8")
    elseif(name MATCHES "[.]css$")
        set(type "text/css; charset=utf-8")
    elseif(name MATCHES "[.]svg$")
        set(type "image/svg+xml")
    else()
        set(type "text/html; charset=utf-8")
    endif()
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND arrays "static const unsigned char file_${n}[] = {${bytes}};\n")
    string(APPEND table "    {\"${name}\", \"${type}\", file_${n}, sizeof file_${n}},\n")
    math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT} "/* Made of supervisor/gateway/ui by embed.cmake. */
#include \"supervisor/gateway/assets.h\"

const char assets_version[] = \"${version}\";
${arrays}const struct asset assets[] = {
${table}};
const size_t assets_n = sizeof assets / sizeof assets[0];
")
