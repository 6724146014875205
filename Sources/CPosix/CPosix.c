#define _GNU_SOURCE
#include "CPosix.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

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
    const struct sockaddr *target, const struct sockaddr *source, socklen_t length, int *error, int *binding
) {
    *binding = 0;
    int descriptor = socket(target->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) {
        *error = errno;
        return -1;
    }
    int on = 1;
    // The port is chosen by connect(2), for source and target together.
    if (source != NULL
        && (setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) < 0
            || bind(descriptor, source, length) < 0)) {
        *error = errno;
        *binding = 1;
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

struct thread {
    const char *name;
    void (*body)(void *);
    void *context;
};

static void *run_thread(void *argument) {
    struct thread thread = *(struct thread *)argument;
    free(argument);
#if defined(__linux__)
    pthread_setname_np(pthread_self(), thread.name);
    // Waits of under a millisecond end when they should, and not up to 50 µs later.
    prctl(PR_SET_TIMERSLACK, 1);
#endif
    thread.body(thread.context);
    return NULL;
}

int clamor_start_thread(const char *name, void (*body)(void *), void *context) {
    struct thread *thread = malloc(sizeof *thread);
    if (thread == NULL) return ENOMEM;
    *thread = (struct thread){name, body, context};
    pthread_t started;
    int error = pthread_create(&started, NULL, run_thread, thread);
    if (error != 0) free(thread); else pthread_detach(started);
    return error;
}

int clamor_set_client_options(int descriptor) {
    int on = 1, most = clamor_most_unsent;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof most);
    return setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

#if defined(__linux__) && defined(SYS_epoll_pwait2)

static int wait_for(int set, struct epoll_event *events, int most, int64_t nanoseconds) {
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    // glibc has the call since 2.35.
    return (int)syscall(SYS_epoll_pwait2, set, events, most, nanoseconds < 0 ? NULL : &time, NULL, 0);
}

int clamor_poll_is_available(void) {
    struct epoll_event event;
    // Older containers answer EPERM, older kernels ENOSYS.
    return wait_for(-1, &event, 1, 0) < 0 && errno == EBADF;
}

int clamor_poll_open(int *bell) {
    int set = epoll_create1(EPOLL_CLOEXEC);
    *bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (set >= 0 && *bell >= 0 && clamor_poll_watch(set, *bell, UINT64_MAX, 0, 0) == 0) return set;
    if (set >= 0) close(set);
    if (*bell >= 0) close(*bell);
    return -1;
}

int clamor_poll_watch(int set, int descriptor, uint64_t key, int writes, int changes) {
    struct epoll_event event = {EPOLLIN | EPOLLRDHUP | EPOLLET | (writes ? EPOLLOUT : 0), {.u64 = key}};
    return epoll_ctl(set, changes ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event);
}

int clamor_poll_wait(int set, struct clamor_poll_event *events, int most, int64_t nanoseconds) {
    struct epoll_event found[256];
    int count = wait_for(set, found, most < 256 ? most : 256, nanoseconds);
    for (int i = 0; i < count; i++) {
        uint32_t bits = found[i].events;
        events[i] = (struct clamor_poll_event){
            .key = found[i].data.u64,
            .writes = (bits & EPOLLOUT) != 0,
            .reads = (bits & EPOLLIN) != 0,
            .ends = (bits & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
        };
    }
    return count;
}

void clamor_poll_ring(int bell) {
    // An edge is enough. The count is never read, and cannot overflow.
    uint64_t one = 1;
    (void)!write(bell, &one, sizeof one);
}

#else

int clamor_poll_is_available(void) { return 0; }
int clamor_poll_open(int *bell) { return -1; }
int clamor_poll_watch(int set, int descriptor, uint64_t key, int writes, int changes) { return -1; }
int clamor_poll_wait(int set, struct clamor_poll_event *events, int most, int64_t nanoseconds) { return -1; }
void clamor_poll_ring(int bell) {}

#endif
