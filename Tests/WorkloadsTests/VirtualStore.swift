import LoadEngine
import MQTT
import MQTTCodec
import NIOCore
import NIOEmbedded
import Synchronization
import Testing
import VirtualServers
import Workloads

/// A store on a clock that the test moves; it hears what passes on the wire, and notes what must not be there yet.
final class VirtualStore: FlowStore {
    /// The outcome of a commit, and the time until then.
    struct Commit: Sendable {
        var takes: TimeAmount
        var error: MQTTStoreError?

        init(_ takes: TimeAmount, error: MQTTStoreError? = nil) {
            self.takes = takes
            self.error = error
        }
    }

    /// One identifier of the server's: how many QoS 2 messages have come under it, and how far they are.
    private struct Inbound {
        var came = 0
        /// Released, or gone with their session.
        var ended = 0
        var inserted = 0
        var forgotten = 0
    }

    private struct State {
        var commits = 0
        var isBusy = false
        /// By client and number, the headers of its messages.
        var kept: [String: [UInt64: WireOracle.Message]] = [:]
        var released: [String: [UInt64: UInt16]] = [:]
        var inbound: [String: [UInt16: Inbound]] = [:]
        var overtaken: [String] = []
    }

    private let loop: EmbeddedEventLoop
    private let commits: @Sendable (Int) -> Commit
    private let state = Mutex(State())

    init(_ loop: EmbeddedEventLoop, _ commits: @escaping @Sendable (Int) -> Commit) {
        self.loop = loop
        self.commits = commits
    }

    /// Commits that were asked for.
    var count: Int { self.state.withLock { $0.commits } }

    /// Messages that are left.
    var kept: [WireOracle.Message] { self.state.withLock { $0.kept.values.flatMap(\.values) } }

    /// Identifiers of received messages that are left.
    var inbound: Int {
        self.state.withLock { state in
            state.inbound.values.reduce(0) { $0 + $1.values.count { $0.inserted > $0.forgotten } }
        }
    }

    /// Everything that was done too early.
    var overtaken: [String] { self.state.withLock { $0.overtaken } }

    func commit(
        _ parts: [(client: String, changes: [MQTTStoreChange])],
        done: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        let number = self.state.withLock { state in
            if state.isBusy { state.overtaken.append("a second commit is under way") }
            state.isBusy = true
            state.commits += 1
            return state.commits
        }
        let commit = self.commits(number)
        self.loop.scheduleTask(in: commit.takes) {
            if commit.error == nil { self.make(parts) }
            self.state.withLock { $0.isBusy = false }
            done(commit.error.map { .failure($0) } ?? .success(()))
        }
    }

    /// Whatever a client sends has to be stored by then.
    func hears(_ client: String, _ step: WireOracle.Step) {
        self.state.withLock { state in
            switch step {
            case .connected(resumed: false):
                for (id, flow) in state.inbound[client] ?? [:] { state.inbound[client]?[id]?.ended = flow.came }
            case .connected, .cameAck, .sentAck(.pubAck, id: _): self.take(step, client, &state)
            case .sent(let message):
                if !(state.kept[client] ?? [:]).values.contains(message) {
                    state.overtaken.append("\(message) was sent first")
                }
            case .sentAck(.pubRel, id: let id):
                if !(state.released[client] ?? [:]).values.contains(id) {
                    state.overtaken.append("PUBREL \(id) of \(client) was sent first")
                }
            case .came(id: let id):
                let flow = state.inbound[client, default: [:]][id, default: Inbound()]
                // A repetition is none.
                if flow.came == flow.ended { state.inbound[client]?[id, default: Inbound()].came += 1 }
            case .sentAck(let type, id: let id):
                let flow = state.inbound[client, default: [:]][id, default: Inbound()]
                let isStored = type == .pubRec ? flow.inserted >= flow.came : flow.forgotten >= flow.ended
                if !isStored { state.overtaken.append("\(type) \(id) of \(client) was sent first") }
            }
        }
    }

    private func take(_ step: WireOracle.Step, _ client: String, _ state: inout State) {
        guard case .cameAck(.pubRel, id: let id) = step, let flow = state.inbound[client]?[id] else { return }
        state.inbound[client]?[id]?.ended = flow.came
    }

    private func make(_ parts: [(client: String, changes: [MQTTStoreChange])]) {
        self.state.withLock { state in
            for (client, changes) in parts {
                for change in changes {
                    switch change {
                    case .insert(let stored):
                        if case .received(let id) = stored.stage {
                            var flow = state.inbound[client, default: [:]][id.rawValue, default: Inbound()]
                            if flow.inserted > flow.forgotten {
                                state.overtaken.append("\(id) of \(client) came twice")
                            }
                            flow.inserted += 1
                            state.inbound[client]?[id.rawValue] = flow
                            continue
                        }
                        let message = stored.message.payload.withUnsafeBytes { WireOracle.Message($0) }
                        if state.kept[client, default: [:]].updateValue(
                            message ?? .blank,
                            forKey: stored.sequence
                        ) != nil {
                            state.overtaken.append("\(stored.sequence) of \(client) came twice")
                        }
                    case .advance(let sequence, .released(let id)):
                        if state.kept[client]?[sequence] != nil {
                            state.released[client, default: [:]][sequence] = id.rawValue
                        }
                    case .advance: break
                    case .remove(let sequence):
                        state.kept[client]?[sequence] = nil
                        state.released[client]?[sequence] = nil
                    case .forget(let id):
                        // Of one that has come again the second has no effect.
                        if let flow = state.inbound[client]?[id.rawValue], flow.inserted > flow.forgotten {
                            state.inbound[client]?[id.rawValue]?.forgotten += 1
                        }
                    case .removeAll:
                        state.kept[client] = nil
                        state.released[client] = nil
                    }
                }
            }
        }
    }
}

extension WireOracle.Message {
    /// Of what carries no header.
    static var blank: Self {
        var message = [UInt8](repeating: 0, count: 32).withUnsafeBytes { Self($0) }
        message?.sequence = .max
        return message ?? .blank
    }
}
