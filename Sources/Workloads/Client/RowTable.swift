/// A table of texts: what `%{column}` stands for, a row for each client.
///
/// One block of bytes for all cells, and four bytes for each: a row of a hundred thousand is not an array of its own.
/// A class, for every client's values point to it.
package final class RowTable: Sendable {
    package let columns: [String]
    /// Of the whole table, so that two plans differ where their tables do.
    package let digest: String
    private let bytes: [UInt8]
    /// Where each cell ends, row by row.
    private let ends: [UInt32]

    /// Bytes of all cells at most.
    package static let mostBytes = Int(UInt32.max)

    /// `cells`: row by row, as many in each as there are columns; at most ``mostBytes`` together.
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

    /// The row of the client with this `%i`: client 1 has the first, and the one behind the last has the first again.
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
    /// Short: its digest says what is in it.
    package var description: String { "\(self.count) rows of \(self.columns), \(self.digest)" }
}
