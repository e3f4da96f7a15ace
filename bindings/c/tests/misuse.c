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

/* A file of 5000 zeros, whose reader must not be asked for more. */
static int64_t zeros(void *context, uint64_t offset, uint8_t *buffer, size_t size) {
    (void)context;
    assert(size > 0 && offset < 5000 && size <= 5000 - offset);
    memset(buffer, 0, size);
    return (int64_t)size;
}

static bool refuses(void *context, size_t row, const uint8_t *data, size_t size) {
    (void)context, (void)row, (void)data, (void)size;
    return false;
}

static bool none(void *context, size_t row) {
    (void)context, (void)row;
    return false;
}

/* A bundle with one image of 4 bytes. */
static const char BUNDLE[] = "__CLANG_OFFLOAD_BUNDLE__\1\0\0\0\0\0\0\0\x45\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\x0d\0\0\0\0\0\0\0"
                             "hip-amd--gfx9code";

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
    assert(!offload_extract_each(NULL, NULL, refuses, NULL, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "file: ");
    assert(!offload_extract_each(empty, NULL, NULL, NULL, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "take: ");
    assert(offload_extract_each(empty, NULL, refuses, NULL, &error));
    OffloadFile *bundle = offload_open_memory((const uint8_t *)BUNDLE, sizeof BUNDLE - 1, &error);
    assert(!offload_extract_each(bundle, NULL, refuses, NULL, &error)), expect(&error, OFFLOAD_ERROR_IO, "the take function failed");
    assert(offload_extract_each(bundle, none, refuses, NULL, &error));
    offload_file_free(bundle);
    OffloadAnswers *list = offload_list(empty, &error);
    assert(list && offload_count(list, "images") == 0 && offload_count(list, "none") == 0 && offload_count(list, NULL) == 0);
    assert(!offload_text(list, "images", 9, "target", &text) && !offload_number(list, "images", (size_t)-1, "size", &number));
    assert(!offload_text(list, "files", 0, "size", &text) && offload_text(list, "files", 0, "format", NULL));
    assert(offload_number(list, "files", 0, "size", &number) && number == 0 && offload_json(list).size > 10);
    OffloadFile *failing = offload_open_reader(fails, NULL, 4096, &error);
    assert(failing && !offload_list(failing, &error)), expect(&error, OFFLOAD_ERROR_IO, "the read function failed at byte 0x0");
    assert(!offload_open_reader(ends, NULL, UINT64_MAX, &error)), expect(&error, OFFLOAD_ERROR_ARGUMENT, "size: ");
    OffloadFile *short_file = offload_open_reader(ends, NULL, INT64_MAX, &error);
    OffloadFile *plain = offload_open_reader(zeros, NULL, 5000, &error);
    OffloadAnswers *match = offload_match(plain, "gfx1100", &error);
    assert(match && offload_count(match, "verdicts") == 1 && offload_text(match, "findings", 0, "member", &text));
    assert(text.size == 0 && text.data && *text.data == '\0');
    offload_answers_free(match), offload_file_free(plain);
    OffloadAnswers *nothing = offload_list(short_file, &error);
    assert(nothing || error);
    offload_answers_free(nothing), offload_error_free(error), offload_answers_free(list), offload_answers_free(NULL);
    offload_file_free(empty), offload_file_free(failing), offload_file_free(short_file), offload_file_free(NULL), offload_error_free(NULL);
    assert(!offload_error_offset(NULL, &number) && !offload_error_message(NULL).data && !offload_json(NULL).data);
    return 0;
}
