#define _GNU_SOURCE
#include "support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void fail(const char *message, ...) {
    int error = errno;
    va_list arguments;
    va_start(arguments, message);
    fputs("climit: ", stderr);
    vfprintf(stderr, message, arguments);
    va_end(arguments);
    fprintf(stderr, error ? ": %s\n" : "\n", strerror(error));
    exit(1);
}

struct cpu_seconds cpu_used(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct cpu_seconds){
        .user = (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6,
        .sys = (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6,
    };
}

void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int listen_on(int *port) {
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) fail("socket");
    int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)*port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof address;
    if (bind(descriptor, (struct sockaddr *)&address, length) < 0) fail("bind to port %d", *port);
    if (listen(descriptor, 4096) < 0) fail("listen");
    getsockname(descriptor, (struct sockaddr *)&address, &length);
    *port = ntohs(address.sin_port);
    return descriptor;
}
