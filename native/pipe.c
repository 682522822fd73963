/* Long slices of files go to a socket through a pipe: `splice` into it, a megabyte at a time, and `splice` out of it.
 *
 * `sendfile` does the same with a pipe of 64 KB, and has to hand on the contents of that before it looks up the next
 * pages; docs/decisions/002-sendfile.md says what that costs.
 *
 * There is one pipe for the whole process. It is empty whenever nobody uses it: what a socket did not take is thrown
 * away together with the pipe, and a forked process creates its own. If the pipe is in use, or no pipe that is large
 * enough can be had, the result is NO_PIPE, and the caller does without.
 */

#ifdef __linux__

#include "native.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { PIPE_BYTES = 1 << 20 }; /* what Linux allows every user by default */

static atomic_flag is_taken = ATOMIC_FLAG_INIT;
static int to_read = -1, to_write = -1; /* to be touched only by the thread that has set is_taken */
static int is_refused;

static void drop_pipe(void)
{
    close(to_read);
    close(to_write);
    to_read = to_write = -1;
}

/* The inherited pipe is still the parent's: with both using it, each would read what the other has written. */
static void after_fork(void)
{
    if (to_read >= 0)
        drop_pipe();
    atomic_flag_clear(&is_taken);
}

static int watches_forks(void)
{
    static int is_watching;
    if (!is_watching)
        is_watching = pthread_atfork(NULL, NULL, after_fork) == 0;
    return is_watching;
}

static int make_pipe(void)
{
    int ends[2];
    if (is_refused || !watches_forks() || pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    to_read = ends[0];
    to_write = ends[1];
    if (fcntl(to_write, F_SETPIPE_SZ, PIPE_BYTES) >= PIPE_BYTES)
        return 0;
    is_refused = 1; /* this user has too many large pipes, or the administrator allows none */
    drop_pipe();
    return -1;
}

/* Hand on what is in the pipe, and return how much was sent. The rest is thrown away, and errno says why. */
static size_t empty_pipe(int socket, size_t held)
{
    size_t sent = 0;
    while (sent < held) {
        ssize_t now = splice(to_read, NULL, socket, NULL, held - sent, SPLICE_F_NONBLOCK);
        if (now > 0)
            sent += (size_t)now;
        else if (now == 0 || errno != EINTR) {
            int failure = now < 0 ? errno : EIO;
            drop_pipe();
            errno = failure;
            break;
        }
    }
    return sent;
}

/* Send as much of the slice as the socket takes. If that is nothing: -1 and errno, or 0 if the file has ended. */
static ssize_t send_through_pipe(int socket, int file, off_t position, size_t length)
{
    size_t sent = 0;
    while (sent < length) {
        off_t at = position + (off_t)sent;
        ssize_t held = splice(file, &at, to_write, NULL, length - sent, SPLICE_F_NONBLOCK);
        if (held <= 0)
            return sent > 0 ? (ssize_t)sent : held;
        size_t taken = empty_pipe(socket, (size_t)held);
        sent += taken;
        if (taken < (size_t)held)
            return sent > 0 ? (ssize_t)sent : -1;
    }
    return (ssize_t)sent;
}

/* Some sandboxes allow `sendfile` but not `splice`. */
static int is_impossible(int failure)
{
    return failure == ENOSYS || failure == EPERM || failure == EINVAL;
}

ssize_t send_long_slice(int socket, int file, off_t position, size_t length)
{
    if (atomic_flag_test_and_set_explicit(&is_taken, memory_order_acquire))
        return NO_PIPE;
    ssize_t sent = NO_PIPE;
    if (to_read >= 0 || make_pipe() == 0)
        sent = send_through_pipe(socket, file, position, length);
    int failure = errno;
    atomic_flag_clear_explicit(&is_taken, memory_order_release);
    errno = failure;
    return sent == -1 && is_impossible(failure) ? NO_PIPE : sent;
}

#endif
