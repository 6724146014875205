import Measurement
import Testing

@Suite("Values by keys")
struct OrderedMapTests {
    @Test("keep the order in which the keys came, however often they are changed")
    func order() {
        var map = OrderedMap<Series, [Int]>()
        let names = ["b", "a", "b", "c", "a"]
        for (place, name) in names.enumerated() {
            map[Series(name: name, labels: ["qos": "1"]), default: []].append(place)
        }
        #expect(map.all.map(\.key.name) == ["b", "a", "c"])
        #expect(map.all.map(\.value) == [[0, 2], [1, 4], [3]])
        #expect(map[Series(name: "a", labels: [:])] == nil)
    }
}
