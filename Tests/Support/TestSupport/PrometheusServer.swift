import Foundation

/// A real Prometheus with a configuration and a storage of its own, on a free port of 127.0.0.1.
package struct PrometheusServer: Sendable {
    package static let isInstalled = Self.find("prometheus") != nil && Self.find("promtool") != nil
    /// For `.enabled(if:)`.
    package static let missing = "needs prometheus: make test installs it"

    /// One series of an answer.
    package struct Sample: Hashable, Sendable {
        /// `__name__` included.
        package var labels: [String: String]
        package var value: Double
    }

    package struct Failed: Error, CustomStringConvertible {
        package let description: String
    }

    package let port: Int
    package let program: RunningProgram

    /// Runs `body` with a fresh server, which is stopped afterwards.
    ///
    /// - Parameters:
    ///   - configuration: the text of `prometheus.yml`.
    ///   - body: what to run; the server is ready then, and may have scraped.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws, or why there is no server.
    package static func with<Result>(
        configuration: String,
        _ body: (PrometheusServer) async throws -> Result
    ) async throws -> Result {
        let folder = try ScratchFolder()
        let server = try await self.start(in: folder, configuration)
        do {
            let result = try await body(server)
            try await server.stop()
            return result
        } catch {
            try await server.stop()
            throw error
        }
    }

    /// Another process can take a free port before the server binds it: then another port is tried.
    private static func start(in folder: ScratchFolder, _ configuration: String) async throws -> PrometheusServer {
        guard let command = self.find("prometheus") else { throw Failed(description: self.missing) }
        let file = try folder.write(configuration, to: "prometheus.yml")
        var attempt = 1
        while true {
            let port = try ReservedPort().port
            let arguments = [
                "--config.file=\(file)", "--storage.tsdb.path=\(folder.path("data-\(attempt)"))",
                "--web.listen-address=127.0.0.1:\(port)",
            ]
            let program = try RunningProgram(command, arguments)
            do {
                try await program.line(on: .errors) { $0.contains("Server is ready to receive web requests.") }
                return PrometheusServer(port: port, program: program)
            } catch  where attempt < 5 && !(error is CancellationError) {
                program.send(SIGKILL)
                attempt += 1
            }
        }
    }

    /// Its storage is removed after this, so it has to have ended.
    private func stop() async throws {
        self.program.send(SIGKILL)
        _ = try await self.program.ended()
    }

    /// The answer to an instant query; empty if no series matches.
    ///
    /// `time`: in seconds since 1970; `nil`: now.
    package func query(_ expression: String, at time: Double? = nil) async throws -> [Sample] {
        struct Answer: Decodable {
            struct Series: Decodable {
                var metric: [String: String]
                var value: Value
            }
            /// A time and the number as a text.
            struct Value: Decodable {
                var number: Double

                init(from decoder: any Decoder) throws {
                    var pair = try decoder.unkeyedContainer()
                    _ = try pair.decode(Double.self)
                    let text = try pair.decode(String.self)
                    self.number = text == "NaN" ? .nan : Double(text.replacing("Inf", with: "inf")) ?? .nan
                }
            }
        }
        guard let promtool = Self.find("promtool") else { throw Failed(description: Self.missing) }
        let moment = time.map { ["--time=\(String(format: "%.3f", $0))"] } ?? []
        let arguments =
            ["query", "instant", "--format=json"] + moment + ["http://127.0.0.1:\(self.port)", expression]
        let ending = try await RunningProgram(promtool, arguments).ended()
        guard ending.status == 0 else { throw Failed(description: "\(expression): \(ending.errors)") }
        return try JSONDecoder().decode([Answer.Series].self, from: Data(ending.output.utf8)).map {
            Sample(labels: $0.metric, value: $0.value.number)
        }
    }

    /// Whether `promtool check metrics` has nothing to remark on a page in the text format; its remarks otherwise.
    package static func remarks(on page: [UInt8]) throws -> String {
        let folder = try ScratchFolder()
        let file = try folder.write(String(decoding: page, as: UTF8.self), to: "page")
        guard let promtool = self.find("promtool") else { throw Failed(description: self.missing) }
        let ending = try RunningProgram.run("/bin/sh", ["-c", "exec \(promtool) check metrics < \(file)"])
        return ending.output + ending.errors
    }

    private static func find(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return path.split(separator: ":").map { "\($0)/\(name)" }.first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
    }
}
