import FoundationEssentials
package import Measurement

package enum RunJSON {
    /// The first count that a sum with others of its kind could overflow.
    private static func impossibleCount(in record: RunRecord) -> String? {
        let parts: [(String, Any)] = [
            ("books", record.books), ("ledger", record.ledger), ("generator", record.generator),
            ("errors", record.errors), ("groups", record.groups as Any), ("population", record.population as Any),
        ]
        return parts.lazy.compactMap { self.impossibleCount($1, $0) }.first
    }

    private static func impossibleCount(_ value: Any, _ place: String) -> String? {
        switch value {
        case let count as UInt64: return count > 1 << 53 ? place : nil
        case let count as Int: return count.magnitude > 1 << 53 ? place : nil
        default:
            return Mirror(reflecting: value).children.enumerated().lazy.compactMap { index, child in
                let name = child.label == "some" ? place : "\(place).\(child.label ?? "\(index)")"
                return self.impossibleCount(child.value, name)
            }.first
        }
    }

    /// Pretty, with sorted keys, so that two runs can be compared line by line.
    package static func text(_ record: RunRecord) throws(ResultError) -> String {
        try PrettyJSON.text(record, path: "run.json")
    }

    /// Reads the record in a result directory.
    ///
    /// - Parameter directory: a finished one, or a partial one for what was known at its last checkpoint.
    /// - Returns: the record.
    /// - Throws: if there is no run record, or one of a schema that is not known.
    package static func read(directory: String) throws(ResultError) -> RunRecord {
        try self.read(file: directory + "/run.json")
    }

    /// The same by the path of the record itself, as a history has it.
    static func read(file path: String) throws(ResultError) -> RunRecord {
        let data = try TextFile.data(path)
        let schema: String
        do {
            let record = try JSONDecoder().decode(RunRecord.self, from: data)
            if let place = self.impossibleCount(in: record) {
                throw ResultError(path: path, reason: "\(place) is a count that no run reaches")
            }
            if RunRecord.knownSchemas.contains(record.schema) { return record }
            schema = record.schema
        } catch let error as ResultError {
            throw error
        } catch let DecodingError.keyNotFound(key, context) {
            throw ResultError(path: path, reason: "\(self.place(context.codingPath, key)) is missing")
        } catch let DecodingError.typeMismatch(_, context), let DecodingError.valueNotFound(_, context) {
            throw ResultError(path: path, reason: "\(self.place(context.codingPath)): \(context.debugDescription)")
        } catch let DecodingError.dataCorrupted(context) {
            let place = context.codingPath.isEmpty ? "not JSON" : self.place(context.codingPath)
            throw ResultError(path: path, reason: "\(place): \(context.debugDescription)")
        } catch {
            throw ResultError(path: path, reason: "not a run record: \(error)")
        }
        let known = RunRecord.knownSchemas.joined(separator: " or ")
        throw ResultError(path: path, reason: "its schema is '\(schema)', not \(known)")
    }

    private static func place(_ path: [any CodingKey], _ last: (any CodingKey)? = nil) -> String {
        (path + (last.map { [$0] } ?? [])).map(\.stringValue).joined(separator: ".")
    }
}

/// JSON that people read too: pretty, with sorted keys.
package enum PrettyJSON {
    /// The text of a value.
    ///
    /// An error names `path`. `isSnakeCase`: the member `planHash` is the key `plan_hash`.
    package static func text(
        _ value: some Encodable,
        path: String,
        isSnakeCase: Bool = false
    ) throws(ResultError) -> String {
        let encoder = JSONEncoder()
        if isSnakeCase { encoder.keyEncodingStrategy = .convertToSnakeCase }
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        do {
            return String(decoding: try encoder.encode(value), as: UTF8.self) + "\n"
        } catch {
            throw ResultError(path: path, reason: "cannot be encoded: \(error)")
        }
    }
}

/// Files that are read whole.
enum TextFile {
    static func data(_ path: String) throws(ResultError) -> Data {
        do {
            return try Data(contentsOf: URL(filePath: path))
        } catch {
            let isMissing = !FileManager.default.fileExists(atPath: path)
            throw ResultError(path: path, reason: isMissing ? "does not exist" : "cannot be read: \(error)")
        }
    }

    /// Bytes that are no UTF-8 become replacement characters: a file may have been cut anywhere.
    static func text(_ path: String) throws(ResultError) -> String {
        String(decoding: try self.data(path), as: UTF8.self)
    }
}
