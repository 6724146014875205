#ifndef CFUZZING_H
#define CFUZZING_H

#include <stddef.h>
#include <stdint.h>

/// Bytes that malloc has handed out and not got back; 0 where the C library does not tell.
size_t clamor_heap_bytes(void);

/// Memory of `pages` pages whose end is the end of what may be read: the page behind it traps.
///
/// Returns the end; the memory lives as long as the process.
void *clamor_guarded_memory_end(size_t pages);

/// On a signal that ends the process, the input at hand is written to stderr as hex.
void clamor_report_input_on_crash(void);

/// The input at hand; kept by address, so it has to stay where it is until the next call. `seconds` of this thread's
/// processor time, unless 0, end the process with it.
void clamor_input_begins(const void *bytes, size_t count, uint32_t seconds);

/// There is no input at hand any more, and the time that was set ends nothing.
void clamor_inputs_end(void);

/// The most memory that the process had resident so far, in KiB.
size_t clamor_peak_memory(void);

/// Processor time of this process in microseconds.
uint64_t clamor_processor_time(void);

typedef int (*clamor_fuzz_one)(const uint8_t *bytes, size_t count);

/// libFuzzer, where it is linked in: it calls `one` until it is done, and ends the process.
int LLVMFuzzerRunDriver(int *argc, char ***argv, clamor_fuzz_one one);

/// libFuzzer's own mutations, for a mutator beside them.
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t count, size_t capacity);

#endif
