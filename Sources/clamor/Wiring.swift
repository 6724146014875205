import EmbeddedBroker
import Foundation
import MQTTCodec
import Measurement
import Report
import Workloads
import RunResult

/// The places where the command line meets the rest of the program.
enum Wiring {
    /// Checks that only other targets can make.
    static var checks: OptionChecks {
        var checks = OptionChecks()
        checks.threshold = { sentence, hasLedger in
            do throws(ThresholdError) {
                let threshold = try Threshold.parse(sentence)
                let needsLedger = ["delivery_", "request"].contains { threshold.name.hasPrefix($0) }
                return needsLedger && !hasLedger
                    ? "it needs the ledger, which requires subscribers, no -m, and -s 32 or more"
                    : nil
            } catch {
                // The message already begins with the flag and its value.
                return error.problem
            }
        }
        checks.topicFilter = { filter in
            do throws(TopicError) {
                _ = try TopicFilter(validating: filter)
                return nil
            } catch {
                return error.words
            }
        }
        checks.topicName = { topic in
            do throws(TopicError) {
                try TopicName.validate(topic)
                return nil
            } catch {
                return error.words
            }
        }
        return checks
    }

    static func run(_ options: MQTTOptions) async -> ExitStatus {
        var options = options
        options.segment.schedule = ScenarioGroup.Work.mqtt(options).schedule
        guard options.segment.processes == nil else {
            return await ProcessesSession(options.common, [MQTTGroup(options)]).perform()
        }
        return await RunSession([MQTTGroup(options)], options.common).perform()
    }

    static func run(_ options: XMPPOptions) async -> ExitStatus {
        var options = options
        options.segment.schedule = ScenarioGroup.Work.xmpp(options).schedule
        guard options.segment.processes == nil else {
            return await ProcessesSession(options.common, [XMPPGroup(options)]).perform()
        }
        return await RunSession([XMPPGroup(options)], options.common).perform()
    }

    static func run(_ options: ScenarioOptions) async -> ExitStatus {
        guard !options.isCheck else { return ScenarioCheck(options).perform() }
        var options = options
        if options.common.segment.part != nil { options.common.segment.schedule = options.scheduleHash }
        guard options.common.segment.processes == nil else {
            return await ProcessesSession(options.common, options.groups.map(\.runGroup)).perform()
        }
        return await RunSession(options).perform()
    }

    static func decode(_ options: DecodeOptions) async -> ExitStatus {
        options.isAllocationPass
            ? await AllocationPass.answer(options) : await DecodeSession(options).perform()
    }

    static func serve(_ options: BrokerOptions) async -> ExitStatus {
        await BrokerService(options).perform()
    }

    static func examine(_ options: DoctorOptions) async -> ExitStatus {
        await DoctorSession(options).perform()
    }

    static func report(_ options: ReportOptions) -> ExitStatus {
        ReportSession(options).perform()
    }
}
