/* offload: the GPU code in files and packages. MIT or Apache-2.0.
 *
 * Written by cbindgen from bindings/c/src: change it there.
 *
 * A program opens a file from memory or from a function that reads it, asks questions, and reads the rows of the answers by the
 * names of their fields. The fields are those of the tool's JSON (docs/json.md of the repository), with `member` in the place of
 * `file`.
 *
 * Ownership. A pointer that a function returns belongs to the caller, and its `_free` function ends it; NULL may be freed.
 * Texts are UTF-8, are not terminated, and live as long as the object that they are from.
 *
 * Threads. The only global state is constant tables. An OffloadFile may be used by several threads at once if its read function
 * may be called so; OffloadAnswers and OffloadError never change, and any thread may read them. Each is freed once, when no thread
 * uses it.
 *
 * Callbacks. The functions of the caller return: they must neither throw nor longjmp, and must not free the file that is read.
 *
 * Stack. A thread that asks a question needs a stack of at least 256 KiB, more than threads have by default with musl (128 KiB).
 *
 * Errors. A function that fails returns NULL or false, and sets *error if `error` is not NULL: free it with offload_error_free.
 * No function ends or unwinds the caller: a fault in the library is an error of the kind OFFLOAD_ERROR_INTERNAL.
 *
 * Numbers are bytes where no other unit is given. */

#ifndef OFFLOAD_H
#define OFFLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The version of the binary interface. It grows when a program built for an earlier version would not run: a function that is
 * gone or has other arguments. New functions and new fields of rows leave it.
 */
#define OFFLOAD_ABI_VERSION 1

/**
 * The kind of an error.
 */
typedef enum {
  /**
   * An argument makes no sense: a null pointer, a GPU that is not known, a row that is not there.
   */
  OFFLOAD_ERROR_ARGUMENT = 1,
  /**
   * The read or the write function failed.
   */
  OFFLOAD_ERROR_IO = 2,
  /**
   * The file is damaged.
   */
  OFFLOAD_ERROR_DATA = 3,
  /**
   * Memory or another limit was exceeded.
   */
  OFFLOAD_ERROR_LIMIT = 4,
  /**
   * A fault of the library.
   */
  OFFLOAD_ERROR_INTERNAL = 5,
} OffloadErrorKind;

/**
 * The answer to a question: lists of rows with named fields.
 */
typedef struct OffloadAnswers OffloadAnswers;

/**
 * An error: its kind, a sentence, and the offset in the file.
 */
typedef struct OffloadError OffloadError;

/**
 * A file, or a package of files: wheel, zip, tar, deb, rpm, conda, container image.
 */
typedef struct OffloadFile OffloadFile;

/**
 * A text in UTF-8. It is not terminated, and may have zeros inside. It lives as long as the object that it is from.
 */
typedef struct {
  /**
   * The first byte; NULL for no text. The first byte of an empty text is a zero, which does not count.
   */
  const char *data;
  /**
   * The number of bytes.
   */
  size_t size;
} OffloadText;

/**
 * Reads bytes of a file: at most `size` bytes from `offset` to `buffer`. Returns how many, at least 1 before the end of the file; 0 at
 * the end; a negative number if reading failed.
 */
typedef int64_t (*OffloadRead)(void *context, uint64_t offset, uint8_t *buffer, size_t size);

/**
 * Takes the next bytes of an image; returns false if it cannot.
 */
typedef bool (*OffloadWrite)(void *context, const uint8_t *data, size_t size);

/**
 * Returns whether the bytes of an image are wanted. `row` is its row in the list `images` of offload_list.
 */
typedef bool (*OffloadChoose)(void *context, size_t row);

/**
 * Takes the next bytes of the image in a row of the list `images`; returns false if it cannot.
 */
typedef bool (*OffloadTake)(void *context, size_t row, const uint8_t *data, size_t size);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns OFFLOAD_ABI_VERSION of the library that is loaded: a program compares it with the version in its header.
 */
uint32_t offload_abi_version(void);

/**
 * Returns the version of the library, such as 0.1.0. The text is never freed.
 */
OffloadText offload_version(void);

/**
 * Returns the number of rows in a list: `images`, `files`, `kernels`, `verdicts`, `answers` or `findings`. It is 0 for a list that
 * the answer does not have.
 *
 * @param answers Answers of this library, not freed; NULL has no rows.
 * @param list The name of the list, ending with a zero.
 */
size_t offload_count(const OffloadAnswers *answers,
                     const char *list);

/**
 * Writes a field that is a text to `text`; returns false if the row has no such field, or it is not a text.
 *
 * @param field The name of the field, ending with a zero: `target`. In a field that has fields or numbered values, names are
 *   separated by a slash: `compression/method`, `path/0`.
 * @param text May be NULL. The text lives as long as the answers.
 */
bool offload_text(const OffloadAnswers *answers,
                  const char *list,
                  size_t row,
                  const char *field,
                  OffloadText *text);

/**
 * Writes a field that is a number to `number`; returns false if the row has no such field, or it is not a number that fits. Truth
 * values are 0 and 1.
 *
 * @param field As for offload_text.
 * @param number May be NULL.
 */
bool offload_number(const OffloadAnswers *answers,
                    const char *list,
                    size_t row,
                    const char *field,
                    uint64_t *number);

/**
 * Returns all lists as one JSON object: `{"images":[...],"files":[...],"findings":[...]}`. The text lives as long as the answers.
 *
 * @param answers Answers of this library, not freed.
 */
OffloadText offload_json(const OffloadAnswers *answers);

/**
 * Frees answers, and the texts of their rows.
 *
 * @pre `answers` is NULL, or from this library and not freed.
 */
void offload_answers_free(OffloadAnswers *answers);

/**
 * Returns the kind of an error.
 *
 * @pre `error` is from this library and not freed.
 */
OffloadErrorKind offload_error_kind(const OffloadError *error);

/**
 * Returns one sentence that says what is wrong, where, and what was expected. The text lives as long as the error.
 *
 * @pre `error` is NULL, or from this library and not freed.
 */
OffloadText offload_error_message(const OffloadError *error);

/**
 * Writes the offset of the fault in the file, in bytes, to `offset`; returns false if it is not known.
 *
 * @pre `error` is NULL, or from this library and not freed; `offset` may be written.
 */
bool offload_error_offset(const OffloadError *error, uint64_t *offset);

/**
 * Frees an error.
 *
 * @pre `error` is NULL, or from this library and not freed.
 */
void offload_error_free(OffloadError *error);

/**
 * Opens a file in memory. Nothing is copied or looked at.
 *
 * @param data The bytes of the file. They must stay as they are until the file is freed.
 * @param size The number of bytes.
 * @return To be freed with offload_file_free; NULL if `data` is NULL and `size` is not 0.
 *
 * @pre `error` is NULL, or may be written.
 */
OffloadFile *offload_open_memory(const uint8_t *data, size_t size, OffloadError **error);

/**
 * Opens a file that a function reads. Nothing is read yet.
 *
 * @param read The function. It is called in the threads that ask questions about the file.
 * @param context The first argument of the function. It must be valid until the file is freed.
 * @param size The size of the file, at most INT64_MAX. No byte after it is asked for.
 * @return To be freed with offload_file_free; NULL if `read` is NULL, or the size too large.
 *
 * @pre `error` is NULL, or may be written.
 */
OffloadFile *offload_open_reader(OffloadRead read, void *context, uint64_t size, OffloadError **error);

/**
 * Frees a file. Answers about it stay.
 *
 * @pre `file` is NULL, or from this library and not freed.
 */
void offload_file_free(OffloadFile *file);

/**
 * Lists the images of a file, or of all members of a package.
 *
 * The lists: `images` (the fields of `offload ls --json`: `member`, `index`, `kind`, `triple`, `target`, `offset`, `size`, ...),
 * `files` (`member`, `size`, `format`, `images`) and `findings`, the faults (`code`, `level`, `member`, `offset`, `message`). A damaged file is
 * not an error: its sound parts are listed, and the others are findings.
 *
 * @param file A file of this library, not freed.
 * @return To be freed with offload_answers_free; NULL if reading failed.
 *
 * @pre `error` is NULL, or may be written.
 */
OffloadAnswers *offload_list(const OffloadFile *file,
                             OffloadError **error);

/**
 * Lists the kernels of a file, or of all members of a package, with their resources.
 *
 * The lists: `kernels` (the fields of `offload kernels --json`: `member`, `name`, `demangled`, `target`, `code`, `registers`, ...) and `findings`.
 *
 * A file whose images are all for other GPUs, or which has none, has a finding that says so.
 *
 * @param file A file of this library, not freed.
 * @param gpu A GPU, as for offload_match, for the images that it loads, generic code among them; NULL for all images.
 * @return To be freed with offload_answers_free; NULL if reading failed, or the GPU is not known.
 *
 * @pre `error` is NULL, or may be written.
 */
OffloadAnswers *offload_kernels(const OffloadFile *file,
                                const char *gpu,
                                OffloadError **error);

/**
 * Judges whether a file, or a package, has code for a GPU, by the rules of its runtime.
 *
 * The lists: `verdicts` (`gpu`, `answer`: `yes`, `partly`, `unknown` or `no`, `message`; one row, or of an archive with several
 * container images one for each, with its name as `image`), `answers` about each container (the fields of `offload match --json`) and
 * `findings`. Where an error among these may have kept code from being seen, the answer is not `no`, but `unknown`. An archive of
 * container images is judged by the files that each sees.
 *
 * @param file A file of this library, not freed.
 * @param gpu A target ID or the name of a product, ending with a zero: `gfx90a:xnack+`, `sm_90`, `RX 7600`.
 * @return To be freed with offload_answers_free; NULL if reading failed, or the GPU is not known.
 *
 * @pre `error` is NULL, or may be written.
 */
OffloadAnswers *offload_match(const OffloadFile *file,
                              const char *gpu,
                              OffloadError **error);

/**
 * Hands the bytes of an image to a function, piece by piece, decompressed.
 *
 * The first of several members of one name is meant. Cost: each call reads the package up to the image; of a zip file only its
 * directory and the member. For several images use offload_extract_each.
 *
 * @param file A file of this library, not freed.
 * @param member The field `member` of the image, ending with a zero; empty for a file that is not a package.
 * @param index The field `index` of the image.
 * @param write The function.
 * @param context The first argument of the function.
 * @return false if the file has no such image, it is damaged, or a function failed: then some bytes may have been handed over.
 *
 * @pre `error` is NULL, or may be written.
 */
bool offload_extract(const OffloadFile *file,
                     const char *member,
                     size_t index,
                     OffloadWrite write,
                     void *context,
                     OffloadError **error);

/**
 * Hands the bytes of many images to a function, piece by piece, decompressed, in the order of the list `images` of offload_list.
 *
 * The row in that list names an image, so members of one name are apart. Cost: as offload_list, and each file with wanted images
 * is read once more, up to the last of them; a compressed member is not decompressed again. An image without bytes is not handed over.
 *
 * @param file A file of this library, not freed.
 * @param choose A function that is asked about each image; NULL if all are wanted. It is asked about all images of a member before
 *   the bytes of the first come.
 * @param take The function that takes bytes.
 * @param context The first argument of both functions.
 * @return false at the first image that is damaged, or if a function failed: then some bytes of it may have been handed over.
 *
 * @pre `error` is NULL, or may be written.
 */
bool offload_extract_each(const OffloadFile *file,
                          OffloadChoose choose,
                          OffloadTake take,
                          void *context,
                          OffloadError **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* OFFLOAD_H */
