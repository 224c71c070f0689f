/* Preloaded: makes writes and syncs of some files fail with EIO while a file says so.
 *
 * SHIM_REFUSED names that file: a line "write" or "sync", a space, and the end of the paths whose calls fail. What was made
 * to fail is noted beside it, in <file>.hits, a line each.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long put(int fd, const char *text, size_t size) { return syscall(SYS_write, fd, text, size); }

static void note(const char *control, const char *kind, const char *path) {
    char name[4200], line[4200];
    snprintf(name, sizeof name, "%s.hits", control);
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int size = snprintf(line, sizeof line, "%s %s\n", kind, path);
    if (fd >= 0) {
        put(fd, line, (size_t)size);
        close(fd);
    }
}

/* Whether a call of this kind on a file is to fail. */
static int refused(const char *kind, int fd) {
    const char *control = getenv("SHIM_REFUSED");
    int told = control ? open(control, O_RDONLY | O_CLOEXEC) : -1;
    if (told < 0)
        return 0;
    char wanted[4096], link[64], path[4096];
    ssize_t length = read(told, wanted, sizeof wanted - 1);
    close(told);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t named = readlink(link, path, sizeof path - 1);
    if (length <= 0 || named <= 0)
        return 0;
    wanted[length] = path[named] = 0;
    wanted[strcspn(wanted, "\n")] = 0;
    char *end = strchr(wanted, ' ');
    if (!end)
        return 0;
    *end++ = 0;
    size_t size = strlen(end);
    if (strcmp(wanted, kind) || size > (size_t)named || strcmp(path + named - size, end))
        return 0;
    note(control, kind, path);
    return 1;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_OR(kind, fd, call)         \
    do {                                \
        int before = errno;             \
        if (refused(kind, fd)) {        \
            errno = EIO;                \
            return -1;                  \
        }                               \
        errno = before;                 \
        return call;                    \
    } while (0)

ssize_t write(int fd, const void *from, size_t size) { FAIL_OR("write", fd, NEXT(write)(fd, from, size)); }
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
    FAIL_OR("write", fd, NEXT(pwrite)(fd, from, size, at));
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    FAIL_OR("write", fd, NEXT(pwrite64)(fd, from, size, at));
}
int fsync(int fd) { FAIL_OR("sync", fd, NEXT(fsync)(fd)); }
int fdatasync(int fd) { FAIL_OR("sync", fd, NEXT(fdatasync)(fd)); }
