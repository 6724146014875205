// Reading a stream of XMPP messages in memory with libexpat, namespaces resolved, cut in one of two ways.

#include "support.h"

#include <expat.h>
#include <stdio.h>
#include <stdlib.h>

static const char header[] =
    "<?xml version='1.0'?><stream:stream id='5501739245' version='1.0' xml:lang='en' "
    "xmlns:stream='http://etherx.jabber.org/streams' from='localhost' xmlns='jabber:client'>";

/// As ejabberd relays it.
static const char message[] =
    "<message xml:lang='en' to='user00012@localhost/clamor' from='user00007@localhost/clamor' type='chat' "
    "id='c7-00001042'><body>Q0xBTQEAAAAqAAAABwAAAAAAAAAAAAQSAAAAGNzXB1o=</body></message>";

/// Stays in the second-level cache, as what was just read from a socket does.
enum { MESSAGES = 1024, STREAM = MESSAGES * (sizeof message - 1) };

/// A round is so many walks of the stream: a look at the clock is a system call.
enum { WALKS = 16, ROUNDS = 100000 };

/// Adds up what it is given, so that nothing can be left out.
struct sums {
    uint64_t messages, attributes, text;
    int depth;
};

static void begin(void *context, const XML_Char *name, const XML_Char **attributes) {
    struct sums *sums = context;
    sums->depth++;
    for (; *attributes; attributes += 2) sums->attributes++;
    sums->text += (uint8_t)name[0];
}

static void end(void *context, const XML_Char *name) {
    struct sums *sums = context;
    (void)name;
    if (--sums->depth == 1) sums->messages++;
}

static void characters(void *context, const XML_Char *text, int size) {
    struct sums *sums = context;
    (void)text;
    sums->text += (uint64_t)size;
}

static void take(XML_Parser parser, const char *bytes, size_t size) {
    if (XML_Parse(parser, bytes, (int)size, 0) != XML_STATUS_OK)
        fail("expat refused its stream: %s", XML_ErrorString(XML_GetErrorCode(parser)));
}

/// Ends of the pieces that the stream is cut into.
static uint32_t *cut(const char *form, size_t *count) {
    uint32_t *ends = malloc((STREAM + 1) * sizeof *ends);
    uint64_t random = 0x9E3779B97F4A7C15;
    *count = 0;
    for (uint32_t at = 0; at < STREAM;) {
        if (!strcmp(form, "contiguous")) {
            at += 65536;
        } else if (!strcmp(form, "fragments")) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            at += 1 + (uint32_t)(random >> 32) % 7;
        } else {
            fail("--mode is contiguous or fragments, not %s", form);
        }
        ends[(*count)++] = at < STREAM ? at : STREAM;
    }
    return ends;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int run_xml(const struct options *options) {
    char *stream = malloc(STREAM);
    for (size_t i = 0; i < MESSAGES; i++) memcpy(stream + i * (sizeof message - 1), message, sizeof message - 1);
    size_t pieces;
    uint32_t *ends = cut(options->mode, &pieces);

    struct sums sums = {0};
    XML_Parser parser = XML_ParserCreateNS(NULL, '|');
    XML_SetUserData(parser, &sums);
    XML_SetElementHandler(parser, begin, end);
    XML_SetCharacterDataHandler(parser, characters);
    take(parser, header, sizeof header - 1);

    static int64_t took[ROUNDS];
    size_t count = 0;
    int64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID), last = start;
    // --seconds 0 is one walk, for callgrind.
    int walks = options->seconds > 0 ? WALKS : 1;
    // The first round warms the caches and is not counted.
    for (bool warm = false; count == 0 || (count < ROUNDS && (double)(last - start) < options->seconds * 1e9);
         warm = true) {
        for (int walk = 0; walk < walks; walk++) {
            uint32_t from = 0;
            for (size_t i = 0; i < pieces; i++) {
                take(parser, stream + from, ends[i] - from);
                from = ends[i];
            }
        }
        int64_t now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        if (warm) took[count++] = now - last;
        last = now;
    }
    // Expat may put off the last token until more bytes come.
    uint64_t given = MESSAGES * (uint64_t)walks * (count + 1);
    if (sums.messages > given || sums.messages + 1 < given || sums.attributes < 5 * sums.messages)
        fail("expat lost messages");
    XML_ParserFree(parser);
    qsort(took, count, sizeof *took, compare);
    double nanoseconds = (double)took[count / 2] / ((double)MESSAGES * walks);
    printf("{\"command\":\"xml\",\"form\":\"%s\",\"messages\":%llu,\"read_ns\":%.4f,\"megabytes_per_second\":%.3f}\n",
           options->mode, (unsigned long long)sums.messages, nanoseconds, (sizeof message - 1) / nanoseconds * 1e3);
    return 0;
}
