#ifndef CBUILDFACTS_H
#define CBUILDFACTS_H

/// Lines about this build: revision, compiler, dependencies. NULL where the build knew none.
const char *_Nullable clamor_build_facts(void);

#endif
