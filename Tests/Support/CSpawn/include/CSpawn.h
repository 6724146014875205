#ifndef CSPAWN_H
#define CSPAWN_H

/// Starts the program `path` with `arguments` (the first is its name, a null pointer ends them), the environment of this
/// process, nothing on its standard input, and none of the descriptors of this process.
///
/// Not by Foundation's `Process`: on the way to a child it copies whole `dirent` structures out of the list of open
/// descriptors, beyond the end of the list's memory where there are thousands, as in tests that run side by side.
///
/// Returns its number, or the negative of an error number. `output` and `errors` get the reading ends of its standard
/// output and error.
int clamor_spawn(const char *path, char *const arguments[], int *output, int *errors);

#endif
