import Coordination
import Foundation
import LoadEngine

// A run over many machines: its coordinator, and a segment's way to it.
extension GivenOptions {
    /// Reads a scenario file for a coordinator, which runs none of its clients.
    package mutating func coordinate(_ file: String) -> Invocation {
        let source = ScenarioSource(file: file, set: self[\.variables] ?? [], target: self[\.target])
        switch self.read(source) {
        case .wrong(let lines): return .wrong(lines)
        case .scenario(let scenario):
            self.checkSegments(scenario, isSeries: false)
            var options = CoordinateOptions(scenario: scenario, segments: self[\.segmentCount] ?? 1)
            if !self.isGiven(\.segmentCount) {
                self.refuse(\.segmentCount, "is missing; give the number of segments that will join")
            }
            if let text = self[\.listen] {
                if let place = CoordinatorPlace(text) {
                    options.listen = place
                } else {
                    self.refuse(\.listen, "'\(text)' is no address; write it like 10.0.0.1:7883")
                }
            }
            options.watches = self[\.watches] ?? 0
            options.joinTimeout = self[\.joinTimeout] ?? options.joinTimeout
            options.onLost = self[\.onLost] ?? options.onLost
            options.run = self.environment["CLAMOR_RUN"] ?? ""
            (options.certificateFile, options.keyFile) = (self[\.coordinatorCertificate], self[\.coordinatorKey])
            options.credentials = self.coordinatorCredentials(self[\.coordinatorUser])
            if let user = self[\.coordinatorUser], options.credentials == nil {
                self.refuse(
                    \.coordinatorUser,
                    "the user '\(user)' needs a password; set CLAMOR_COORDINATOR_PASSWORD, or leave the option out"
                )
            }
            return .coordinate(options)
        case nil: return .text("")
        }
    }

    /// The way to the coordinator; after the segment was read.
    mutating func readCoordinator(into options: inout LoadOptions) {
        guard self.isGiven(\.coordinator) else { return }
        guard options.segment.part != nil || self.isGiven(\.segment) else {
            return self.refuse(\.coordinator, "needs \(\.segment, "I/N"), or \(\.segment, "auto") under a scheduler")
        }
        if self.isGiven(\.startAt) { self.refuse(\.startAt, "the coordinator says when the run begins; leave it out") }
        // That of the file is the coordinator's too.
        if let seed = self.found[OptionTable[\.seed].id], seed.place == nil {
            self.refuse(\.seed, "the coordinator gives all segments its own; leave it out")
        }
        options.segment.coordinator = self.coordinatorOptions()
        options.files.writesPage = false
        // One watch is enough, and the first segment has it.
        if let part = options.segment.part, part.index > 0 {
            (options.live.processes, options.live.pages, options.live.readsSys) = ([], [], false)
        }
    }

    /// Reads the options of a watch, which has no part of the load.
    package mutating func watch() -> Invocation {
        var live = LiveOptions()
        self.readWatched(into: &live)
        if !live.watches {
            self.refuse(
                \.watchedProcesses,
                "is missing; give the server's process, such as \(\.watchedProcesses, "mosquitto")"
            )
        }
        if !self.isGiven(\.coordinator) {
            self.refuse(
                \.coordinator,
                "is missing; give the address of 'clamor coordinate', such as mqtt://10.0.0.1:7883"
            )
        }
        guard let coordinator = self.coordinatorOptions() else { return .text("") }
        let run = self.environment["CLAMOR_RUN"] ?? ""
        return .watch(WatchOptions(coordinator: coordinator, live: live, run: run, quiet: self[\.quiet] ?? false))
    }

    /// `nil` without one, or after a refusal.
    private mutating func coordinatorOptions() -> CoordinatorOptions? {
        guard let text = self[\.coordinator] else { return nil }
        let scheme = text.firstRange(of: "://")
        let name = scheme.map { text[..<$0.lowerBound] } ?? "mqtt"
        let rest = text[(scheme?.upperBound ?? text.startIndex)...]
        let user = rest.lastIndex(of: "@").map { String(rest[..<$0]) }
        let place = CoordinatorPlace(rest.lastIndex(of: "@").map { rest[rest.index(after: $0)...] } ?? rest)
        guard ["mqtt", "mqtts"].contains(name), let place, user?.contains(":") != true else {
            return self.refused(
                \.coordinator,
                "is no coordinator; write it like mqtt://10.0.0.1:7883, with the password in CLAMOR_COORDINATOR_PASSWORD"
            )
        }
        var coordinator = CoordinatorOptions(place: place, isSecure: name == "mqtts")
        coordinator.joinTimeout = self[\.joinTimeout] ?? coordinator.joinTimeout
        coordinator.authorityFile = self[\.coordinatorAuthority]
        if coordinator.authorityFile != nil, !coordinator.isSecure {
            self.refuse(\.coordinatorAuthority, "is of use with \(\.coordinator, "mqtts://...") only")
        }
        coordinator.credentials = self.coordinatorCredentials(user)
        if coordinator.credentials == nil {
            self.refuse(
                \.coordinator,
                "needs a password; set CLAMOR_COORDINATOR_PASSWORD to the one that the coordinator was given, or printed"
            )
        }
        return coordinator
    }

    /// `nil` without a password.
    private func coordinatorCredentials(_ user: String?) -> CoordinationCredentials? {
        let password = self[\.coordinatorPassword] ?? self.inherited(\.coordinatorPassword) ?? ""
        let user = user.flatMap { $0.isEmpty ? nil : $0 } ?? CoordinationCredentials.usualUser
        return password.isEmpty ? nil : CoordinationCredentials(user: user, password: password)
    }
}
