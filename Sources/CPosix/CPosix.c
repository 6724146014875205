#include "CPosix.h"

#include <errno.h>
#include <sys/socket.h>

static _Thread_local void *offered_memory;
static _Thread_local size_t offered_size;

void clamor_lease_offer(void *memory, size_t size) {
    offered_memory = memory;
    offered_size = size;
}

void *clamor_lease_allocate_offered(size_t size) {
    void *memory = offered_memory;
    if (memory == NULL || size != offered_size) return clamor_lease_allocate(size);
    offered_memory = NULL;
    clamor_lease_retain(memory);
    return memory;
}

int clamor_begin_connect(
    const struct sockaddr *target, const struct sockaddr *source, socklen_t length, int *error
) {
    *error = 0;
    int descriptor = socket(target->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    int on = 1;
    // The port is chosen by connect(2), for source and target together.
    if (source != NULL
        && (setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) < 0
            || bind(descriptor, source, length) < 0)) {
        close(descriptor);
        return -1;
    }
    if (connect(descriptor, target, length) < 0 && errno != EINPROGRESS) {
        *error = errno;
        close(descriptor);
        return -1;
    }
    return descriptor;
}

int clamor_ended_connect(int descriptor, const struct sockaddr *target, socklen_t length) {
    // A second connect(2) is the cheapest way to ask, and it returns a pending error.
    if (connect(descriptor, target, length) == 0 || errno == EISCONN) return 0;
    return errno == EINPROGRESS ? EALREADY : errno;
}
