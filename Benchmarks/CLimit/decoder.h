// An incremental decoder of PUBLISH streams, written for speed: packets are taken where they lie, and only one that
// the end of the bytes cuts is copied.
//
// It checks what Clamor's checks of a PUBLISH: the first byte, the length's form and the packet's size against a
// limit, the topic's length, the packet identifier, the properties' length, and the topic: UTF-8 without U+0000, `+`
// and `#`, eight bytes a step, unless it is the same as the packet's before it. `checks_topic` false leaves the last
// one out; `v5` and `checks_topic` are constants at every call, so that nothing is decided per packet.

#ifndef DECODER_H
#define DECODER_H

#include "support.h"

#include <stdlib.h>

struct message {
    const uint8_t *topic, *payload;
    uint32_t topic_size, payload_size;
    uint16_t packet_id;
    uint8_t first;
};

typedef void message_handler(void *context, const struct message *message);

struct decoder {
    uint8_t *carry;        // the front of a packet whose end has not come
    uint32_t carried, carry_room;
    uint32_t needed;       // the whole packet's size; 0 while its length is incomplete
    uint64_t packets;
};

enum { MAXIMUM_PACKET = 268435460 };

/// Whether `topic` is well-formed UTF-8 that names one topic; byte by byte, for what is not plain ASCII.
bool topic_is_legal(const uint8_t *topic, uint32_t size);

static inline bool topic_is_plain(const uint8_t *topic, uint32_t size) {
    const uint64_t ones = 0x0101010101010101, top = 0x8080808080808080, add = 0x7F7F7F7F7F7F7F7F;
    if (size < 8) return false;
    for (uint32_t at = 0, last = size - 8;; at = at + 8 < last ? at + 8 : last) {
        uint64_t word;
        memcpy(&word, topic + at, 8);
        // With the top bits clear, adding 0x7F sets the top bit of each byte that is not 0.
        uint64_t all = (word + add) & ((word ^ ones * '+') + add) & ((word ^ ones * '#') + add) & ~word;
        if ((all & top) != top) return false;
        if (at == last) return true;
    }
}

/// Whether two topics of at least 8 bytes are the same.
static inline bool topics_are_equal(const uint8_t *left, const uint8_t *right, uint32_t size) {
    for (uint32_t at = 0, last = size - 8;; at = at + 8 < last ? at + 8 : last) {
        uint64_t one, other;
        memcpy(&one, left + at, 8);
        memcpy(&other, right + at, 8);
        if (one != other) return false;
        if (at == last) return true;
    }
}

/// The last topic that passed; while the bytes lie still, an equal one needs no second look.
struct passed_topic {
    const uint8_t *bytes;
    uint32_t size;
};

/// Bit per legal combination of DUP, QoS and RETAIN.
static inline bool publish_is_legal(uint8_t first) { return 0x3C3F >> (first & 15) & 1; }

/// Takes the body of a whole PUBLISH; false where it breaks a rule.
__attribute__((always_inline)) static inline bool take_publish(
    uint8_t first, const uint8_t *body, uint32_t size, bool v5, bool checks_topic, struct passed_topic *passed,
    message_handler *handler, void *context) {
    if (size < 2) return false;
    struct message message = {.first = first, .topic = body + 2, .topic_size = get_u16(body)};
    uint32_t at = 2 + message.topic_size;
    if (first & 6) {
        if (at + 2 > size) return false;
        message.packet_id = get_u16(body + at);
        if (message.packet_id == 0) return false;
        at += 2;
    }
    if (at > size) return false;
    if (v5) {
        // The measured streams have no properties; what has some is walked over, not read.
        uint32_t length;
        if (at == size) return false;
        int header = fixed_header(body + at - 1, size - at + 1, &length);
        if (header <= 0) return false;
        at += (uint32_t)header - 1 + length;
        if (at > size) return false;
    }
    if (checks_topic
        && !(message.topic_size == passed->size && passed->size >= 8
             && topics_are_equal(message.topic, passed->bytes, passed->size))) {
        if (!topic_is_plain(message.topic, message.topic_size) && !topic_is_legal(message.topic, message.topic_size))
            return false;
        *passed = (struct passed_topic){message.topic, message.topic_size};
    }
    message.payload = body + at;
    message.payload_size = size - at;
    handler(context, &message);
    return true;
}

__attribute__((always_inline)) static inline bool take_packet(
    struct decoder *decoder, const uint8_t *packet, uint32_t header, uint32_t size, bool v5, bool checks_topic,
    struct passed_topic *passed, message_handler *handler, void *context) {
    decoder->packets++;
    if (packet[0] >> 4 == 3)
        return take_publish(packet[0], packet + header, size - header, v5, checks_topic, passed, handler, context);
    // SUBACK and PINGRESP come now and then to those who receive.
    return packet[0] == 0x90 || packet[0] == 0xD0;
}

static inline void carry_append(struct decoder *decoder, const uint8_t *bytes, uint32_t size) {
    if (decoder->carried + size > decoder->carry_room) {
        uint32_t room = 2 * (decoder->carried + size);
        decoder->carry_room = room < 256 ? 256 : room;
        decoder->carry = realloc(decoder->carry, decoder->carry_room);
    }
    memcpy(decoder->carry + decoder->carried, bytes, size);
    decoder->carried += size;
}

/// Takes `size` bytes, and gives every packet that they complete to `handler`; false where a rule is broken.
__attribute__((always_inline)) static inline bool decode(
    struct decoder *decoder, const uint8_t *bytes, size_t size, bool v5, bool checks_topic, message_handler *handler,
    void *context) {
    size_t at = 0;
    uint32_t remaining;
    struct passed_topic passed = {0};
    if (decoder->carried) {
        while (decoder->needed == 0) {
            if (at == size) return true;
            carry_append(decoder, bytes + at++, 1);
            int header = fixed_header(decoder->carry, decoder->carried, &remaining);
            if (header < 0) return false;
            if (header > 0) decoder->needed = (uint32_t)header + remaining;
            if (decoder->needed > MAXIMUM_PACKET) return false;
        }
        uint32_t missing = decoder->needed - decoder->carried;
        uint32_t added = missing < size - at ? missing : (uint32_t)(size - at);
        carry_append(decoder, bytes + at, added);
        at += added;
        if (decoder->carried < decoder->needed) return true;
        int header = fixed_header(decoder->carry, decoder->carried, &remaining);
        struct passed_topic none = {0};
        if (!take_packet(decoder, decoder->carry, (uint32_t)header, decoder->needed, v5, checks_topic, &none, handler,
                         context))
            return false;
        decoder->carried = decoder->needed = 0;
    }
    while (at < size) {
        const uint8_t *packet = bytes + at;
        if (packet[0] >> 4 == 3 ? !publish_is_legal(packet[0]) : packet[0] == 0) return false;
        int header = 2;
        // Nearly every length is one byte.
        if (size - at >= 2 && packet[1] < 0x80) remaining = packet[1];
        else header = fixed_header(packet, size - at, &remaining);
        if (header < 0) return false;
        uint32_t whole = (uint32_t)header + remaining;
        if (header == 0 || whole > size - at) {
            decoder->needed = header == 0 ? 0 : whole;
            if (decoder->needed > MAXIMUM_PACKET) return false;
            carry_append(decoder, packet, (uint32_t)(size - at));
            return true;
        }
        if (!take_packet(decoder, packet, (uint32_t)header, whole, v5, checks_topic, &passed, handler, context))
            return false;
        at += whole;
    }
    return true;
}

#endif
