package import RunResult

/// The reason why a run does not start: one line, and the exit status of the command.
public struct RunRefusal: Error, CustomStringConvertible {
    /// The reason, and mostly the remedy.
    public let line: String
    package let status: ExitStatus
    /// The line.
    public var description: String { self.line }

    package init(_ line: String, _ status: ExitStatus = .usage) {
        self.line = line
        self.status = status
    }

    /// The value that `body` returns; its error is the reason of a refusal, behind a beginning.
    package static func unless<Value>(
        _ beginning: String = "",
        _ status: ExitStatus = .usage,
        _ body: () throws -> Value
    ) throws(RunRefusal) -> Value {
        do { return try body() } catch { throw RunRefusal("\(beginning)\(error)", status) }
    }

    /// The refusal with the group's name as prefix, in a run of several groups.
    func of(group: String?) -> RunRefusal { group.map { RunRefusal("\($0): \(self.line)", self.status) } ?? self }
}
