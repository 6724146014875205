import RunControl
import Scenario
import Testing
import Transport
import clamor

@Suite("The command line of doctor")
struct DoctorOptionsTests {
    @Test("reads its flags as the runs do")
    func flags() {
        func doctor(_ line: String) -> DoctorOptions? {
            guard case .doctor(let options) = Invocation.parse(line.split(separator: " ").map(String.init)) else {
                return nil
            }
            return options
        }
        #expect(doctor("doctor")?.clients == nil)
        #expect(doctor("doctor")?.load.target == .servers([Target(host: "127.0.0.1", port: 1_883)]))
        #expect(doctor("doctor --rate 5/s")?.clients == nil)
        #expect(doctor("doctor --rate 5/s")?.load.pacing == .rate(5))
        #expect(doctor("doctor -c 7")?.clients == 7)
        #expect(doctor("doctor --subscribers 5")?.clients == 5)
        #expect(doctor("doctor -h embedded")?.load.target == .embedded(arguments: []))
        let all = doctor("doctor -c 7 --subscribers 5 -h a,b:9 -p 8 --ifaddr 10.0.0.1,::1 --threads 3 --json")
        #expect(all?.clients == 12)
        #expect(all?.load.publishers == 7)
        #expect(all?.load.subscribers == 5)
        #expect(all?.load.target == .servers([Target(host: "a", port: 8), Target(host: "b", port: 9)]))
        #expect(all?.load.sourceAddresses == ["10.0.0.1", "::1"])
        #expect(all?.load.threads == 3)
        #expect(all?.json == true)
        #expect(doctor("doctor --quiet")?.quiet == true)
    }
}
