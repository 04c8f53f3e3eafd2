# Run by cpack when the component is installed: pages of the manual as Debian wants them, without the time of the packing.
execute_process(COMMAND find $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/man -type f ! -name *.gz -exec gzip -9nf {} +
    COMMAND_ERROR_IS_FATAL ANY)
