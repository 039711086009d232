/* Answers questions about .fidx files by fidx.h: what tests compare with the other readers.
 *
 * Standard input: for each file a line `SIZE QUESTIONS`, its bytes, and the questions, a line each:
 *     tracks | init PERIOD | seek TRACK SECONDS | sample TRACK NUMBER | span START STOP | verify
 * Standard output: a line of JSON for each file: a list of answers, null where there is none; or
 * the number of the error with which it is refused.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fidx.h"

static void *room(size_t size)
{
    void *made = malloc(size ? size : 1);
    if (!made)
        exit(3);
    return made;
}

static void put(int64_t number)
{
    if (number == FIDX_UNKNOWN)
        printf("null");
    else
        printf("%" PRId64, number);
}

static void put_text(fidx_text text)
{
    printf("%.*s", (int)text.size, text.at);
}

static void put_ranges(const fidx_range *ranges, size_t count)
{
    printf("[");
    for (size_t n = 0; n < count; n++)
        printf("%s[%" PRId64 ", %" PRId64 "]", n ? ", " : "", ranges[n].start, ranges[n].stop);
    printf("]");
}

static void answer(const fidx_index *index, const fidx_track *tracks, const char *line)
{
    size_t track, period, count = 0, most = 0;
    int64_t number;
    double start, stop;
    fidx_hit hit;
    fidx_sample sample;
    fidx_range range;
    if (!strcmp(line, "tracks\n")) {
        printf("[");
        for (size_t n = 0; n < index->tracks; n++) {
            const fidx_track *one = tracks + n;
            printf("%s{\"id\": %" PRId64 ", \"kind\": ", n ? ", " : "", one->id);
            put_text(one->kind);
            printf(", \"codec\": ");
            put_text(one->codec);
            printf(", \"timescale\": %" PRIu32 ", \"period\": %zu, \"fragments\": %zu",
                   one->timescale, one->period, one->fragments.rows);
            printf(", \"samples\": ");
            put(one->has_samples ? (int64_t)one->samples.rows : FIDX_UNKNOWN);
            printf("}");
        }
        printf("]");
    } else if (!strcmp(line, "verify\n")) {
        printf(fidx_verify(index) ? "false" : "true");
    } else if (sscanf(line, "init %zu", &period) == 1) {
        printf("[");
        for (size_t n = 0; !fidx_init(index, period, n, &range); n++)
            printf("%s[%" PRId64 ", %" PRId64 "]", n ? ", " : "", range.start, range.stop);
        printf("]");
    } else if (sscanf(line, "seek %zu %lf", &track, &start) == 2) {
        if (track >= index->tracks || fidx_seek(tracks + track, start, &hit)) {
            printf("null");
            return;
        }
        printf("{\"fragment\": %zu, \"sample\": ", hit.fragment);
        put(hit.sample);
        printf(", \"offset\": %" PRId64 ", \"size\": %" PRId64 ", \"cts\": %" PRId64
               ", \"dts\": ", hit.offset, hit.size, hit.cts);
        put(hit.dts);
        printf(", \"seconds\": %.17g, \"clamped\": %s}", fidx_seconds(tracks + track, hit.cts),
               hit.clamped ? "true" : "false");
    } else if (sscanf(line, "sample %zu %" SCNd64, &track, &number) == 2) {
        if (track >= index->tracks || fidx_sample_at(tracks + track, number, &sample)) {
            printf("null");
            return;
        }
        printf("{\"offset\": %" PRId64 ", \"size\": %" PRId64 ", \"dts\": %" PRId64
               ", \"cts\": %" PRId64 ", \"duration\": %" PRId64 ", \"sync\": %s}",
               sample.offset, sample.size, sample.dts, sample.cts, sample.duration,
               sample.sync ? "true" : "false");
    } else if (sscanf(line, "span %lf %lf", &start, &stop) == 2) {
        for (size_t n = 0; n < index->tracks; n++)
            most += 2 * tracks[n].fragments.rows;
        fidx_range *ranges = (fidx_range *)room(most * sizeof *ranges);
        if (fidx_span(tracks, index->tracks, NULL, start, stop, ranges, most, &count))
            printf("null");
        else
            put_ranges(ranges, count);
        free(ranges);
    } else {
        exit(4);
    }
}

int main(void)
{
    size_t size, questions;
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%zu %zu", &size, &questions) != 2)
            return 5;
        /* exactly as large as the file, so that a byte too far is noticed */
        unsigned char *data = (unsigned char *)room(size);
        if (fread(data, 1, size, stdin) != size)
            return 6;
        fidx_index index;
        fidx_track *tracks = NULL;
        fidx_status status = fidx_open(data, size, &index);
        if (!status)
            tracks = (fidx_track *)room(index.tracks * sizeof *tracks);
        for (size_t n = 0; !status && n < index.tracks; n++)
            status = fidx_track_at(&index, n, tracks + n);
        if (status)
            printf("%d", (int)status);
        else
            printf("[");
        for (size_t n = 0; n < questions; n++) {
            if (!fgets(line, sizeof line, stdin))
                return 7;
            if (status)
                continue;
            printf(n ? ", " : "");
            answer(&index, tracks, line);
        }
        printf(status ? "\n" : "]\n");
        fflush(stdout);
        free(tracks);
        free(data);
    }
    return 0;
}
