import Coordination
import LoadEngine
import Testing

@Suite("The agreement among segments")
struct ConductorTests {
    @Test("the load begins without segments that have ended, and not before one is up")
    func ended() {
        var conductor = Conductor(segments: 3)
        #expect(conductor.ended(0) == nil)
        #expect(conductor.ended(1) == nil)
        #expect(conductor.settled(2) == .load)
        #expect(conductor.settled(2) == nil)
        var none = Conductor(segments: 2)
        #expect(none.ended(0) == nil && none.ended(1) == nil)
    }

    @Test("a group is complete once, when its sum over all segments is")
    func complete() {
        var conductor = Conductor(segments: 2)
        let whole = DeliveryBalance(expected: 2, received: 2)
        #expect(conductor.balance(whole, of: 0, in: 0) == nil)
        #expect(conductor.balance(of: 0) == nil)
        #expect(conductor.balance(DeliveryBalance(expected: 1, uncertain: 1), of: 0, in: 1) == nil)
        #expect(conductor.balance(DeliveryBalance(expected: 1), of: 0, in: 1) == nil)
        #expect(conductor.balance(of: 0) == DeliveryBalance(expected: 3, received: 2))
        #expect(conductor.balance(DeliveryBalance(expected: 1, received: 1), of: 0, in: 1) == .complete(group: 0))
        #expect(conductor.balance(DeliveryBalance(expected: 1, received: 1), of: 0, in: 1) == nil)
    }
}
