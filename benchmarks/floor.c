/* The floor under an index build: hop over the boxes of a file and read every moof byte once.
 *
 * Nothing is decoded and nothing is kept; a program that builds a table must do at least this.
 * Four ways, since none wins everywhere: mapping pays a page fault for each fragment that stands
 * alone on its page; exact reads pay a system call for each header and each moof; a read that
 * guesses the size of the moof spares the first of the two; chunks of the whole file pay for media
 * that nobody asked for. Opening and closing the file is part of a repetition, as it is part of a
 * build.
 *
 *     floor FILE [REPETITIONS]     prints one line of JSON, times in nanoseconds
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 16, LARGEST_MOOF = 1 << 24, MOST_REPETITIONS = 1000 };

struct seen {
    uint64_t boxes, moofs, moof_bytes, sum;
};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void stop(const char *what)
{
    perror(what);
    exit(2);
}

static uint64_t u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}

/* The length of a box from its header: size 1 means a 64-bit size follows, 0 means to the end
 * of the file (ISO/IEC 14496-12, 4.2.2). */
static uint64_t length(const uint8_t *header, uint64_t left)
{
    uint64_t size = u32(header);
    if (size == 1)
        size = left < HEADER ? left : u32(header + 8) << 32 | u32(header + 12);
    if (size < 8 || size > left)
        size = left;
    return size;
}

static void touch(struct seen *seen, const uint8_t *moof, uint64_t size)
{
    uint64_t sum = 0, word, i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(&word, moof + i, 8);
        sum += word;
    }
    for (; i < size; i++)
        sum += moof[i];
    seen->sum += sum;
    seen->moofs++;
    seen->moof_bytes += size;
}

static int open_file(const char *path, uint64_t *end)
{
    struct stat stat;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &stat) < 0)
        stop(path);
    *end = (uint64_t)stat.st_size;
    return file;
}

static struct seen by_mapping(const char *path)
{
    struct seen seen = {0};
    uint64_t end, at = 0;
    int file = open_file(path, &end);
    const uint8_t *data = mmap(NULL, end, PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED)
        stop("mmap");
    while (at + 8 <= end) {
        uint64_t size = length(data + at, end - at);
        if (!memcmp(data + at + 4, "moof", 4))
            touch(&seen, data + at, size);
        at += size;
        seen.boxes++;
    }
    munmap((void *)data, end);
    close(file);
    return seen;
}

static struct seen by_pread(const char *path)
{
    static uint8_t moof[LARGEST_MOOF];
    struct seen seen = {0};
    uint64_t end, at = 0;
    uint8_t header[HEADER];
    int file = open_file(path, &end);
    while (at + 8 <= end) {
        if (pread(file, header, HEADER, (off_t)at) < 8)
            stop("pread");
        uint64_t size = length(header, end - at);
        if (!memcmp(header + 4, "moof", 4) && size <= LARGEST_MOOF) {
            if (pread(file, moof, size, (off_t)at) != (ssize_t)size)
                stop("pread");
            touch(&seen, moof, size);
        }
        at += size;
        seen.boxes++;
    }
    close(file);
    return seen;
}

/* One read for a fragment: as much as the moof before had, and the header behind it. */
static struct seen by_guess(const char *path)
{
    static uint8_t buffer[LARGEST_MOOF + 2 * HEADER];
    struct seen seen = {0};
    uint64_t end, at = 0, base = 0, have = 0, guess = 4096;
    int file = open_file(path, &end);
    while (at + 8 <= end) {
        uint64_t left = at >= base && at < base + have ? base + have - at : 0;
        const uint8_t *header = buffer + (at - base);
        if (left < HEADER && left < end - at) {
            ssize_t came = pread(file, buffer, guess, (off_t)at);
            if (came < 8)
                stop("pread");
            base = at;
            header = buffer;
            left = have = (uint64_t)came;
        }
        uint64_t size = length(header, end - at);
        if (!memcmp(header + 4, "moof", 4) && size <= LARGEST_MOOF) {
            if (size > left) {
                ssize_t came = pread(file, buffer, size + HEADER, (off_t)at);
                if (came < (ssize_t)size)
                    stop("pread");
                base = at;
                header = buffer;
                have = (uint64_t)came;
            }
            guess = size + 4 * HEADER;
            touch(&seen, header, size);
        }
        at += size;
        seen.boxes++;
    }
    close(file);
    return seen;
}

/* The whole file, media too, a large piece at a time. */
static struct seen by_chunks(const char *path)
{
    enum { CHUNK = 1 << 22 };
    static uint8_t buffer[CHUNK + LARGEST_MOOF];
    struct seen seen = {0};
    uint64_t end, at = 0, base = 0, have = 0;
    int file = open_file(path, &end);
    while (at + 8 <= end) {
        uint64_t want = HEADER < end - at ? HEADER : end - at, size = 0;
        const uint8_t *header = buffer;
        for (int turn = 0; turn < 2; turn++) {
            while (at + want > base + have) {
                uint64_t kept = at < base + have ? base + have - at : 0;
                memmove(buffer, buffer + have - kept, kept);
                base += have - kept;
                ssize_t came = pread(file, buffer + kept, CHUNK, (off_t)(base + kept));
                if (came <= 0)
                    stop("pread");
                have = kept + (uint64_t)came;
            }
            header = buffer + (at - base);
            size = length(header, end - at);
            if (memcmp(header + 4, "moof", 4) || size > LARGEST_MOOF)
                break;
            want = size;
        }
        if (want == size)
            touch(&seen, header, size);
        at += size;
        seen.boxes++;
    }
    close(file);
    return seen;
}

static const struct {
    const char *name;
    struct seen (*read)(const char *path);
} WAYS[] = {
    {"mapping_ns", by_mapping},
    {"exact_ns", by_pread},
    {"guessed_ns", by_guess},
    {"chunks_ns", by_chunks},
};
enum { N_WAYS = sizeof WAYS / sizeof *WAYS };

int main(int count, char **arguments)
{
    static int64_t times[N_WAYS][MOST_REPETITIONS];
    struct seen seen[N_WAYS];
    int repetitions = count > 2 ? atoi(arguments[2]) : 5;
    if (count < 2 || repetitions < 1 || repetitions > MOST_REPETITIONS) {
        fprintf(stderr, "usage: floor FILE [REPETITIONS, 1 to %d]\n", MOST_REPETITIONS);
        return 2;
    }
    for (int i = 0; i < repetitions; i++)
        for (int way = 0; way < N_WAYS; way++) {
            int64_t began = now();
            seen[way] = WAYS[way].read(arguments[1]);
            times[way][i] = now() - began;
        }
    for (int way = 1; way < N_WAYS; way++)
        if (memcmp(&seen[way], &seen[0], sizeof *seen)) {
            fprintf(stderr, "floor: %s saw other bytes than %s\n", WAYS[way].name, WAYS[0].name);
            return 1;
        }
    printf("{");
    for (int way = 0; way < N_WAYS; way++) {
        printf("\"%s\": [", WAYS[way].name);
        for (int i = 0; i < repetitions; i++)
            printf("%s%" PRId64, i ? ", " : "", times[way][i]);
        printf("], ");
    }
    printf("\"boxes\": %" PRIu64 ", \"moofs\": %" PRIu64 ", \"moof_bytes\": %" PRIu64
           ", \"sum\": %" PRIu64 "}\n",
           seen[0].boxes, seen[0].moofs, seen[0].moof_bytes, seen[0].sum);
    return 0;
}
