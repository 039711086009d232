/* Seeks in a saved index by fidx.h: the file is mapped, opened, and asked for random times.
 *
 *     fidx_seek FILE SEEKS     prints one line of JSON for each track, in picoseconds a seek
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "fidx.h"

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double random_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

int main(int argc, char **argv)
{
    fidx_index index;
    fidx_hit hit;
    struct stat stat;
    if (argc != 3)
        return 2;
    long count = atol(argv[2]);
    double *times = malloc((size_t)count * sizeof *times);
    int64_t began = now();
    int file = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &stat) < 0 || !times)
        return 2;
    void *data = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED || fidx_open(data, (size_t)stat.st_size, &index) != FIDX_OK)
        return 3;
    for (size_t n = 0; n < index.tracks; n++) {
        fidx_track track;
        uint64_t state = 2;
        int64_t sum = 0;
        if (n)
            began = now();
        if (fidx_track_at(&index, n, &track) != FIDX_OK || fidx_seek(&track, 3600.5, &hit) != FIDX_OK)
            return 3;
        int64_t opened = now() - began;
        double length = fidx_seconds(&track, track.media_end);
        for (long k = 0; k < count; k++)
            times[k] = random_number(&state) * length;
        began = now();
        for (long k = 0; k < count; k++) {
            if (fidx_seek(&track, times[k], &hit) != FIDX_OK)
                return 3;
            sum += hit.offset;
        }
        printf("{\"open_ns\": %" PRId64 ", \"seek_ps\": %" PRId64 ", \"sum\": %" PRId64 "}\n", opened,
               (now() - began) * 1000 / count, sum);
    }
    return 0;
}
