/* Lists the images of a file and asks whether it has code for a GPU. With `each`, also reads the bytes of all images in one pass; with
 * `extract`, one by one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload.h"

static int64_t read_file(void *context, uint64_t offset, uint8_t *buffer, size_t size) {
    FILE *file = context;
    if (fseek(file, (long)offset, SEEK_SET) != 0) return -1;
    size_t got = fread(buffer, 1, size, file);
    return ferror(file) ? -1 : (int64_t)got;
}

static bool count(void *context, const uint8_t *data, size_t size) {
    (void)data;
    *(uint64_t *)context += size;
    return true;
}

static bool count_of_row(void *context, size_t row, const uint8_t *data, size_t size) {
    (void)data;
    ((uint64_t *)context)[row] += size;
    return true;
}

static int fail(OffloadError *error) {
    OffloadText text = offload_error_message(error);
    fprintf(stderr, "error %d: %.*s\n", (int)offload_error_kind(error), (int)text.size, text.data);
    offload_error_free(error);
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 3 || offload_abi_version() != OFFLOAD_ABI_VERSION) return 2;
    FILE *stream = fopen(argv[1], "rb");
    if (!stream || fseek(stream, 0, SEEK_END) != 0) return 2;
    OffloadError *error = NULL;
    OffloadFile *file = offload_open_reader(read_file, stream, (uint64_t)ftell(stream), &error);
    OffloadAnswers *list = file ? offload_list(file, &error) : NULL;
    OffloadAnswers *match = list ? offload_match(file, argv[2], &error) : NULL;
    if (!match) return fail(error);
    const char *how = argc > 3 ? argv[3] : "";
    size_t images = offload_count(list, "images");
    uint64_t *bytes = calloc(images + 1, sizeof *bytes);
    if (!strcmp(how, "each") && !offload_extract_each(file, NULL, count_of_row, bytes, &error)) fail(error), error = NULL;
    for (size_t row = 0; row < images; row++) {
        OffloadText target = {0}, member = {0};
        uint64_t size = 0, index = 0;
        offload_text(list, "images", row, "target", &target);
        offload_text(list, "images", row, "member", &member);
        offload_number(list, "images", row, "size", &size);
        offload_number(list, "images", row, "index", &index);
        char *name = calloc(member.size + 1, 1);
        for (size_t at = 0; at < member.size; at++) name[at] = member.data[at];
        if (!strcmp(how, "extract") && !offload_extract(file, name, index, count, &bytes[row], &error)) fail(error), error = NULL;
        printf("%.*s %" PRIu64 " %" PRIu64 "\n", (int)target.size, target.data ? target.data : "", size, bytes[row]);
        free(name);
    }
    OffloadText verdict = {0};
    offload_text(match, "verdicts", 0, "answer", &verdict);
    printf("%s: %.*s, %zu findings\n", argv[2], (int)verdict.size, verdict.data ? verdict.data : "",
           offload_count(list, "findings"));
    free(bytes), offload_answers_free(match), offload_answers_free(list), offload_file_free(file), fclose(stream);
    return 0;
}
