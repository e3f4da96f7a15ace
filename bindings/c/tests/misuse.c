/* Calls every function with null pointers, and with functions that fail: each says so, and nothing ends. */
#include <assert.h>
#include <string.h>

#include "offload.h"

static int64_t fails(void *context, uint64_t offset, uint8_t *buffer, size_t size) {
    (void)context, (void)offset, (void)buffer;
    return (int64_t)size + 1;
}

static int64_t ends(void *context, uint64_t offset, uint8_t *buffer, size_t size) {
    (void)context, (void)offset, (void)buffer, (void)size;
    return 0;
}

static void expect(OffloadError **error, OffloadErrorKind kind, const char *text) {
    OffloadText message = offload_error_message(*error);
    assert(offload_error_kind(*error) == kind && message.size >= strlen(text));
    assert(memcmp(message.data, text, strlen(text)) == 0);
    offload_error_free(*error);
    *error = NULL;
}

int main(void) {
    OffloadError *error = NULL;
    OffloadText text;
    uint64_t number;
    assert(!offload_open_memory(NULL, 1, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "data: ");
    assert(!offload_open_reader(NULL, NULL, 1, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "read: ");
    assert(!offload_list(NULL, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "file: ");
    assert(!offload_kernels(NULL, NULL, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "file: ");
    assert(!offload_match(NULL, "gfx1100", NULL));
    assert(!offload_extract(NULL, "", 0, NULL, NULL, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "file: ");
    OffloadFile *empty = offload_open_memory(NULL, 0, &error);
    assert(empty && !offload_match(empty, "gfx1103x", &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "gpu: ");
    assert(!offload_match(empty, NULL, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "gpu: ");
    assert(!offload_match(empty, "\xff", &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "gpu: ");
    assert(!offload_extract(empty, "none", 0, NULL, NULL, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "write: ");
    OffloadAnswers *list = offload_list(empty, &error);
    assert(list && offload_count(list, "images") == 0 && offload_count(list, "none") == 0 && offload_count(list, NULL) == 0);
    assert(!offload_text(list, "images", 9, "target", &text) && !offload_number(list, "images", (size_t)-1, "size", &number));
    assert(!offload_text(list, "files", 0, "size", &text) && offload_text(list, "files", 0, "format", NULL));
    assert(offload_number(list, "files", 0, "size", &number) && number == 0 && offload_json(list).size > 10);
    OffloadFile *failing = offload_open_reader(fails, NULL, 4096, &error);
    assert(failing && !offload_list(failing, &error)), expect(&error, OFFLOAD_ERROR_IO, "the read function failed at byte 0x0");
    OffloadFile *short_file = offload_open_reader(ends, NULL, UINT64_MAX, &error);
    OffloadAnswers *nothing = offload_list(short_file, &error);
    assert(nothing || error);
    offload_answers_free(nothing), offload_error_free(error), offload_answers_free(list), offload_answers_free(NULL);
    offload_file_free(empty), offload_file_free(failing), offload_file_free(short_file), offload_file_free(NULL), offload_error_free(NULL);
    assert(!offload_error_offset(NULL, &number) && !offload_error_message(NULL).data && !offload_json(NULL).data);
    return 0;
}
