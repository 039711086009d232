/* Hostile files for fidx.h: every function is called, and no byte outside of the file may be read.
 *
 * With clang, for as long as one likes:
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc/fragdex/formats fuzz/fidx_h.c -o fidx_h
 *     ./fidx_h -max_len=65536 FOLDER_OF_FIDX_FILES
 * With -DFROM_STDIN it is a program that takes files from standard input, each behind a line with
 * its size, and prints the status of each: tests/formats/test_fidx_hostile.py feeds it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fidx.h"

enum { TRACKS = 64, ROOM = 256 };

static const double moments[] = {0.0, 0.04, 1.0, -1.0, 1e9, -1e300, 5e-324, 1e308, HUGE_VAL, NAN};
enum { MOMENTS = sizeof moments / sizeof *moments };

static void ask_track(const fidx_track *track)
{
    fidx_hit hit;
    fidx_sample sample;
    int64_t ticks;
    for (int n = 0; n < MOMENTS; n++) {
        if (!fidx_ticks(track, moments[n], &ticks))
            fidx_seconds(track, ticks);
        fidx_seek(track, moments[n], &hit);
    }
    fidx_seek_ticks(track, INT64_MIN, &hit);
    fidx_seek_ticks(track, INT64_MAX, &hit);
    fidx_sample_at(track, -1, &sample);
    fidx_sample_at(track, 0, &sample);
    fidx_sample_at(track, (int64_t)track->samples.rows - 1, &sample);
    fidx_sample_at(track, (int64_t)track->samples.rows, &sample);
}

static fidx_status ask(const unsigned char *data, size_t size)
{
    fidx_index index;
    static fidx_track tracks[TRACKS];
    fidx_range range, ranges[ROOM];
    size_t loaded = 0, count;
    char text[24];
    fidx_status status = fidx_open(data, size, &index);
    if (status)
        return status;
    fidx_copy_text(index.media_name, text, sizeof text);
    fidx_copy_text(index.media_etag, text, 1);
    fidx_copy_text(index.media_etag, NULL, 0);
    for (size_t period = 0; period <= index.periods; period++)
        fidx_init(&index, period, period, &range);
    while (loaded < TRACKS && !(status = fidx_track_at(&index, loaded, tracks + loaded)))
        ask_track(tracks + loaded++);
    for (int a = 0; a < MOMENTS; a++)
        for (int b = 0; b < MOMENTS; b++)
            if (!fidx_span(tracks, loaded, NULL, moments[a], moments[b], ranges, ROOM, &count))
                for (size_t n = 0; n < count; n++)
                    if (ranges[n].start >= ranges[n].stop
                        || (n && ranges[n].start <= ranges[n - 1].stop))
                        abort();
    fidx_span(tracks, loaded, NULL, 0.0, 1.0, ranges, 1, &count);
    fidx_verify(&index);
    return status == FIDX_ABSENT ? FIDX_OK : status;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    ask(data, size);
    return 0;
}

#ifdef FROM_STDIN
int main(void)
{
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        size_t size = strtoul(line, NULL, 10);
        /* of its own size, so that a byte too far is noticed */
        unsigned char *data = (unsigned char *)malloc(size ? size : 1);
        if (!data || fread(data, 1, size, stdin) != size)
            return 3;
        printf("%d\n", (int)ask(data, size));
        fflush(stdout);
        free(data);
    }
    return 0;
}
#endif
