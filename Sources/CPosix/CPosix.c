#include "CPosix.h"

static _Thread_local void *offered_memory;
static _Thread_local size_t offered_size;

void clamor_lease_offer(void *memory, size_t size) {
    offered_memory = memory;
    offered_size = size;
}

void *clamor_lease_allocate_offered(size_t size) {
    void *memory = offered_memory;
    if (memory == NULL || size != offered_size) return clamor_lease_allocate(size);
    offered_memory = NULL;
    clamor_lease_retain(memory);
    return memory;
}
