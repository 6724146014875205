"""Writes Sources/SASL/Resources/unicode-3.2.bin: RFC 3454's tables and NFKC, both of Unicode 3.2.

Usage: python3 Tests/SASLTests/Tables/generate.py > Sources/SASL/Resources/unicode-3.2.bin
The data is that of CPython's unicodedata.ucd_3_2_0 and stringprep.
"""

import stringprep
import sys
from unicodedata import ucd_3_2_0 as ucd

EVERY = [chr(point) for point in range(0x110000) if not 0xD800 <= point < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)


def varint(value):
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


def ranges(test):
    """Runs of code points, each as the gap before it and its length."""
    found, begin = [], None
    for point in range(0x110001):
        inside = point < 0x110000 and test(point)
        if inside and begin is None:
            begin = point
        elif not inside and begin is not None:
            found.append((begin, point - begin))
            begin = None
    data, end = varint(len(found)), 0
    for begin, length in found:
        data += varint(begin - end) + varint(length)
        end = begin + length
    return data


def surrogate(point):
    return 0xD800 <= point < 0xE000


def nothing(point):
    return not surrogate(point) and stringprep.in_table_b1(chr(point))


def space(point):
    return not surrogate(point) and stringprep.in_table_c12(chr(point))


def prohibited(point):
    char = chr(point)
    tables = [
        stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
        stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8,
        stringprep.in_table_c9,
    ]
    return not surrogate(point) and any(table(char) for table in tables)


def unassigned(point):
    return not surrogate(point) and stringprep.in_table_a1(chr(point))


def right_to_left(point):
    return not surrogate(point) and stringprep.in_table_d1(chr(point))


def left_to_right(point):
    return not surrogate(point) and stringprep.in_table_d2(chr(point))


def decompositions():
    """Full compatibility decompositions; those of Hangul syllables are arithmetic."""
    found = []
    for char in EVERY:
        if ord(char) not in HANGUL:
            whole = ucd.normalize("NFKD", char)
            if whole != char:
                found.append((ord(char), [ord(part) for part in whole]))
    data, last = varint(len(found)), 0
    for point, parts in found:
        data += varint(point - last) + varint(len(parts)) + b"".join(varint(part) for part in parts)
        last = point
    return data


def compositions():
    """Pairs that NFC composes."""
    found = []
    for char in EVERY:
        mapping = ucd.decomposition(char)
        if mapping and not mapping.startswith("<") and ord(char) not in HANGUL:
            pair = [int(part, 16) for part in mapping.split()]
            if len(pair) == 2 and ucd.normalize("NFC", "".join(map(chr, pair))) == char:
                found.append((pair[0], pair[1], ord(char)))
    data = varint(len(found))
    for first, second, whole in found:
        data += varint(first) + varint(second) + varint(whole)
    return data


def classes():
    """Canonical combining classes above 0, as runs of one class: gap, length, class."""
    found, begin, current = [], 0, 0
    for point in range(0x110001):
        own = 0 if point == 0x110000 or surrogate(point) else ucd.combining(chr(point))
        if own != current:
            if current:
                found.append((begin, point - begin, current))
            begin, current = point, own
    data, end = varint(len(found)), 0
    for begin, length, own in found:
        data += varint(begin - end) + varint(length) + varint(own)
        end = begin + length
    return data


def main():
    data = b"".join(
        ranges(test) for test in (nothing, space, prohibited, unassigned, right_to_left, left_to_right)
    ) + decompositions() + compositions() + classes()
    sys.stdout.buffer.write(data)


main()
