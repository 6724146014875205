import Ledger
import Measurement
import Testing

@Suite("Problems of the ledger as reasons")
struct LedgerReasonTests {
    @Test(
        "each problem has a code, a sentence and its figures",
        arguments: [
            (
                .tooManyGaps(streams: 1_200), "ledger-overflow",
                "1,200 streams had more gaps than the ledger keeps, so loss is not exact", 1_200, 0
            ),
            (
                .tooManyGaps(streams: 1), "ledger-overflow",
                "1 stream had more gaps than the ledger keeps, so loss is not exact", 1, 0
            ),
            (
                .damagedHeaders(messages: 1), "ledger-foreign", "1 message of this run came with a damaged header", 1,
                0
            ),
            (
                .mixed(streams: 1), "ledger-mixed",
                "1 stream was kept twice, or under another QoS than their publisher's", 1, 0
            ),
            (.outOfMemory, "ledger-memory", "all streams together had more gaps than the ledger keeps", 1, 0),
            (
                .damagedHeaders(messages: 3), "ledger-foreign", "3 messages of this run came with a damaged header", 3,
                0
            ),
            (
                .neverSent(streams: 2), "ledger-beyond-sent", "on 2 streams sequences arrived that were never sent", 2,
                0
            ),
            (
                .strayed(streams: 2), "ledger-stray",
                "2 subscriptions received from a publisher that does not feed them", 2, 0
            ),
            (
                .mixed(streams: 2), "ledger-mixed",
                "2 streams were kept twice, or under another QoS than their publisher's", 2, 0
            ),
            (
                .miscounted(qos: 1, arrived: 2, inStreams: 3), "ledger-count",
                "QoS 1: counted 2 messages on arrival, but the streams hold 3", 2, 3
            ),
            (
                .unbalanced(qos: 2, expected: 3_000, received: 2, lost: 1, outstanding: 4), "delivery-books",
                "QoS 2: expected 3,000 is not received 2 + lost 1 + outstanding 4", 7, 3_000
            ),
            (
                .durationsOfDuplicates(messages: 5), "ledger-duration",
                "5 messages arrived at members of one share group in different segments, "
                    + "so delivery_duration holds their duplicates too", 5, 0
            ),
            (
                .leftBehindDuplicates(messages: 5, lost: 4), "ledger-left",
                "5 messages came to members of one share group in different segments, "
                    + "so the 4 that are lost may have come when their subscribers had gone", 4, 0
            ),
            (
                .leftEarly(subscribers: 2, publishers: 1, nanoseconds: 1_500_000_000), "ledger-left",
                "subscribers of segment 2 left 1.5 s before the last publisher of segment 1 had ended, "
                    + "so what they missed is not known; a longer drain keeps them", 1.5, 0
            ),
        ] as [(LedgerProblem, String, String, Double, Double)]
    )
    func reasons(_ problem: LedgerProblem, _ code: String, _ text: String, _ measured: Double, _ limit: Double) {
        let reason = problem.reason
        #expect(reason.code == code)
        #expect(reason.text == text)
        #expect(reason.measured == measured && reason.limit == limit)
    }
}
