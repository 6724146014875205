import Foundation
import MQTT
import MQTTSQLiteStore
import StoreVictim
import Testing
import TestSupport

@Suite("A store whose process is killed")
struct StoreKillTests {
    @Test(
        "has every commit that returned, whole, and at most the one after it",
        arguments: 1...20 as ClosedRange<UInt64>
    )
    func killed(_ seed: UInt64) async throws {
        let folder = try ScratchFolder()
        let path = folder.path("db")
        let victim = try StoreProcess.start(["script", path, "\(seed)"])
        // In the midst of it: the line may be any, and what the process does meanwhile is another commit.
        var dice = StoreDice(state: seed)
        let count = 1 + dice.roll(300)
        try await victim.lines { $0.count >= count }
        victim.send(SIGKILL)
        let ending = try await victim.ended()
        #expect(ending.status == -SIGKILL)
        let returned = ending.outputLines.compactMap { Int($0) }.max() ?? 0
        try #require(returned >= count)

        var model = StoreModel()
        var script = StoreScript(seed: seed)
        for _ in 0..<returned { if let changes = script.next() { model.apply(changes) } }
        let before = model.messages
        if let changes = script.next() { model.apply(changes) }
        let found = try await MQTTSQLiteStore(path: path).load(client: "victim")
        #expect(found == before || found == model.messages)
    }
}
