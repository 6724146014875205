import Foundation

/// A port of 127.0.0.1 on which a server is about to listen.
package enum Listener {
    package struct Silent: Error, CustomStringConvertible {
        package let description: String
    }

    /// Returns when a connection to it is accepted.
    ///
    /// - Throws: ``RunningProgram/EndedEarly``, or ``Silent`` after a minute: not every server that finds a port taken ends.
    package static func wait(for port: Int, of program: RunningProgram? = nil) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while !Self.accepts(port) {
            try Task.checkCancellation()
            if ContinuousClock.now > deadline { throw Silent(description: "no server listens on \(port)") }
            if let program, program.hasEnded {
                throw RunningProgram.EndedEarly(description: "ended before it listened: \(try await program.ended())")
            }
            // A server does not announce that it listens; the pause only separates two attempts.
            try await Task.sleep(for: .milliseconds(20))
        }
        // Another process may have taken the port.
        if let program, program.hasEnded {
            throw RunningProgram.EndedEarly(description: "ended at once: \(try await program.ended())")
        }
    }

    private static func accepts(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
