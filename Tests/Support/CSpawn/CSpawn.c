#define _GNU_SOURCE
#include "CSpawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

extern char **environ;

static int spawn(pid_t *child, const char *path, char *const arguments[], int output, int errors) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure) return failure;
    failure = posix_spawnattr_init(&attributes);
    if (!failure) {
        // What this process ignores (SIGPIPE) or blocks is no matter of the program.
        sigemptyset(&signals);
        posix_spawnattr_setsigmask(&attributes, &signals);
        sigfillset(&signals);
        posix_spawnattr_setsigdefault(&attributes, &signals);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        failure = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (!failure) failure = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
        if (!failure) failure = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
        if (!failure) failure = posix_spawn(child, path, &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

int clamor_spawn(const char *path, char *const arguments[], int *output, int *errors) {
    int out[2], err[2];
    pid_t child = 0;
    if (pipe2(out, O_CLOEXEC)) return -errno;
    if (pipe2(err, O_CLOEXEC)) {
        int failure = errno;
        close(out[0]);
        close(out[1]);
        return -failure;
    }
    int failure = spawn(&child, path, arguments, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    if (failure) {
        close(out[0]);
        close(err[0]);
        return -failure;
    }
    *output = out[0];
    *errors = err[0];
    return child;
}
