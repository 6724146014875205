import MQTT
import TestSupport
import Testing

@Suite("QoS 2 messages received")
struct InboundFlowsTests {
    @Test("[MQTT-4.3.3-10] a message is new once, until its sender has released it")
    func once() {
        var flows = InboundFlows()
        #expect(flows.end(1) == false)
        #expect(flows.begin(1) == true)
        #expect(flows.begin(1) == false)
        #expect(flows.count == 1)
        #expect(flows.end(1) == true)
        #expect(flows.end(1) == false)
        #expect(flows.begin(1) == true)
        flows.removeAll()
        #expect(flows.count == 0)
        #expect(flows.end(1) == false)
    }

    @Test("all 65,535 identifiers can be open, in any order")
    func all() {
        var flows = InboundFlows()
        let ids = (1...65_535).map { UInt16($0) }
        for id in ids.shuffled(seed: 1) where !flows.begin(id) { Issue.record("\(id) was there already") }
        #expect(flows.count == 65_535)
        for id in ids where flows.begin(id) { Issue.record("\(id) was lost") }
        for id in ids.shuffled(seed: 2) where !flows.end(id) { Issue.record("\(id) was lost") }
        #expect(flows.count == 0)
    }

    @Test("behaves as a set would", arguments: [16, 64, 65_535])
    func model(_ highest: Int) {
        var generator = SeededGenerator(seed: UInt64(highest))
        var flows = InboundFlows()
        var model: Set<UInt16> = []
        for _ in 0..<20_000 {
            let id = UInt16(Int.random(in: 1...highest, using: &generator))
            if Int.random(in: 0..<100, using: &generator) < 45 {
                #expect(flows.end(id) == (model.remove(id) != nil))
            } else {
                #expect(flows.begin(id) == model.insert(id).inserted)
            }
            #expect(flows.count == model.count)
        }
    }
}
