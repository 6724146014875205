#include "CBuildFacts.h"

// From the object file that .ci/package/facts makes, if it is linked. A constant of this target would be compiled into
// it, and each Swift module that imports the target would be compiled again for each revision.
extern const char clamor_facts[] __attribute__((weak));

const char *clamor_build_facts(void) { return clamor_facts; }
