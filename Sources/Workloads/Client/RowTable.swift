/// A table of texts for `%{column}`, with a row per client.
///
/// All cells share one block of bytes and cost four bytes each, so a table of a hundred thousand rows needs no array
/// per row. It is a class because every client's values refer to it.
package final class RowTable: Sendable {
    package let columns: [String]
    /// Digest of the whole table, so that plans with different tables differ.
    package let digest: String
    private let bytes: [UInt8]
    /// End offset of each cell, row by row.
    private let ends: [UInt32]

    /// Total bytes of all cells, at most.
    package static let mostBytes = Int(UInt32.max)

    /// `cells`: row by row, one per column, at most ``mostBytes`` in total.
    package init(columns: [String], cells: some Sequence<[UInt8]>, digest: String) {
        var bytes: [UInt8] = []
        var ends: [UInt32] = []
        for cell in cells {
            bytes += cell
            ends.append(UInt32(bytes.count))
        }
        precondition(!columns.isEmpty && !ends.isEmpty && ends.count.isMultiple(of: columns.count))
        (self.columns, self.bytes, self.ends, self.digest) = (columns, bytes, ends, digest)
    }

    package var count: Int { self.ends.count / self.columns.count }

    /// Bytes of the longest cell.
    package var longest: Int { zip(self.ends, [0] + self.ends).map { Int($0 - $1) }.max() ?? 0 }

    /// The row of the client with this `%i`.
    ///
    /// Client 1 has the first row; after the last row they start over.
    package func row(ofClient number: Int) -> Int { max(0, number - 1) % self.count }

    package func cell(row: Int, column: Int) -> ArraySlice<UInt8> {
        let index = row * self.columns.count + column
        return self.bytes[(index == 0 ? 0 : Int(self.ends[index - 1]))..<Int(self.ends[index])]
    }
}

extension RowTable: Hashable {
    package static func == (left: RowTable, right: RowTable) -> Bool {
        left === right || left.columns == right.columns && left.bytes == right.bytes && left.ends == right.ends
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.columns)
        hasher.combine(self.digest)
    }
}

extension RowTable: CustomStringConvertible {
    /// Kept short, since the digest identifies the content.
    package var description: String { "\(self.count) rows of \(self.columns), \(self.digest)" }
}
