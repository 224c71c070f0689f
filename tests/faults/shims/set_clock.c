/* Preloaded: the wall clock is set by as many seconds as the file says that SHIM_CLOCK names; the monotonic one is not. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long seconds_set(void) {
    const char *control = getenv("SHIM_CLOCK");
    int told = control ? open(control, O_RDONLY | O_CLOEXEC) : -1;
    if (told < 0)
        return 0;
    char text[32];
    ssize_t length = read(told, text, sizeof text - 1);
    close(told);
    if (length <= 0)
        return 0;
    text[length] = 0;
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *shown) {
    int result = (int)syscall(SYS_clock_gettime, clock, shown);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        shown->tv_sec += seconds_set();
    return result;
}

int gettimeofday(struct timeval *restrict shown, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    shown->tv_sec = now.tv_sec;
    shown->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *kept) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (kept)
        *kept = now.tv_sec;
    return now.tv_sec;
}
